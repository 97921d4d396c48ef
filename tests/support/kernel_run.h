// Runs one kernel on one device with data of a test.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/devices.h"
#include "base/dtype.h"
#include "kernels/catalog.h"

namespace lily::test {

class KernelRun {
 public:
  KernelRun(gpu::Device& device, const std::string& name) : device_(device) {
    dispatch_.kernel = kernels::find_kernel(name);
  }

  // Buffers, in the kernel's order. What the kernel is to write is all NaN before it runs.
  template <class T>
  KernelRun& in(const std::vector<T>& data) {
    const std::unique_ptr<gpu::Buffer>& buffer = add(data.size() * sizeof(T));
    EXPECT_TRUE(device_.upload(dispatch_.buffers.back(), std::as_bytes(std::span(data)))) << buffer->bytes();
    return *this;
  }
  template <class T>
  KernelRun& out(size_t count) {
    return in(std::vector<std::byte>(count * sizeof(T), std::byte{0xff}));
  }
  template <class T>
  KernelRun& inout(const std::vector<T>& data) {
    return in(data);
  }
  // The buffer with that number once more: state that a kernel reads and writes in place.
  KernelRun& same(size_t index) {
    dispatch_.buffers.push_back(dispatch_.buffers[index]);
    return *this;
  }

  template <class Args>
  KernelRun& args(const Args& args) {
    dispatch_.args.resize(sizeof args);
    std::memcpy(dispatch_.args.data(), &args, sizeof args);
    return *this;
  }

  KernelRun& run(uint32_t x, uint32_t y = 1, uint32_t z = 1) {
    dispatch_.groups = {x, y, z};
    const Result<void> done = device_.submit(std::span(&dispatch_, 1));
    EXPECT_TRUE(done) << done.error().message();
    const Result<void> ended = device_.wait();
    EXPECT_TRUE(ended) << ended.error().message();
    return *this;
  }

  template <class T>
  std::vector<T> get(size_t index) const {
    std::vector<T> data(dispatch_.buffers[index].bytes / sizeof(T));
    EXPECT_TRUE(device_.download(dispatch_.buffers[index], std::as_writable_bytes(std::span(data))));
    return data;
  }
  std::vector<float> floats(size_t index) const { return get<float>(index); }
  std::vector<float> bf16(size_t index) const {
    std::vector<float> out;
    for (const uint16_t bits : get<uint16_t>(index)) out.push_back(bf16_to_float(bits));
    return out;
  }

 private:
  const std::unique_ptr<gpu::Buffer>& add(size_t bytes) {
    buffers_.push_back(device_.allocate(bytes).value());
    dispatch_.buffers.push_back({buffers_.back().get(), 0, bytes});
    return buffers_.back();
  }

  gpu::Device& device_;
  gpu::Dispatch dispatch_;
  std::vector<std::unique_ptr<gpu::Buffer>> buffers_;
};

// Normal numbers, the same for the same seed; rounded to bf16 where `as_bf16` is to hold exactly the same values.
inline std::vector<float> normal_numbers(size_t count, unsigned seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> numbers(count);
  for (float& v : numbers) v = bf16_to_float(float_to_bf16(normal(random)));
  return numbers;
}

inline std::vector<uint16_t> as_bf16(const std::vector<float>& values) {
  std::vector<uint16_t> out;
  for (const float v : values) out.push_back(float_to_bf16(v));
  return out;
}

// For a test by device: INSTANTIATE_TEST_SUITE_P(Devices, SomeTest, testing::ValuesIn(gpu::device_names())).
class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<gpu::Device>> device = gpu::open_device(GetParam());
    if (!device) GTEST_SKIP() << device.error().message();
    device_ = std::move(device).value();
  }

  KernelRun kernel(const std::string& name) { return KernelRun(*device_, name); }

  std::unique_ptr<gpu::Device> device_;
};

}  // namespace lily::test
