#include "backend/gpu/emulator/emulator.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <mutex>
#include <numeric>

#include "backend/gpu/emulator/kernel_table.h"
#include "backend/gpu/emulator/lanes.h"
#include "base/aligned_vector.h"
#include "base/thread_pool.h"
#include "kernels/catalog.h"

namespace lily::gpu {
namespace {

class EmulatorBuffer : public Buffer {
 public:
  explicit EmulatorBuffer(AlignedVector<std::byte> data) : Buffer(data.size(), data.data()), data_(std::move(data)) {}

 private:
  AlignedVector<std::byte> data_;
};

struct EmulatorRecording : Recording {
  std::vector<Dispatch> list;
};

class Emulator : public Device {
 public:
  explicit Emulator(const EmulatorOptions& options)
      : pool_(options.threads), random_(options.seed), runners_(static_cast<size_t>(pool_.threads())) {
    traits_.name = "emulator";
    traits_.memory = size_t{4} << 30;
    traits_.unified_memory = true;
  }

  const DeviceTraits& traits() const override { return traits_; }

  Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override {
    AlignedVector<std::byte> data(bytes);
    std::memset(data.data(), 0xff, bytes);  // NaN in every float type
    return std::unique_ptr<Buffer>(std::make_unique<EmulatorBuffer>(std::move(data)));
  }
  Result<std::unique_ptr<Buffer>> allocate_visible(size_t bytes) override { return allocate(bytes); }

  Result<void> upload(const BufferView& to, std::span<const std::byte> from) override {
    std::copy(from.begin(), from.end(), at(to));
    return {};
  }
  Result<void> download(const BufferView& from, std::span<std::byte> to) override {
    std::copy_n(at(from), to.size(), to.begin());
    return {};
  }
  Result<void> copy(const BufferView& from, const BufferView& to) override {
    std::copy_n(at(from), from.bytes, at(to));
    return {};
  }
  Result<void> fill_zero(const BufferView& view) override {
    std::fill_n(at(view), view.bytes, std::byte{0});
    return {};
  }

  Result<std::unique_ptr<Recording>> record(std::vector<Dispatch> list) override {
    auto recording = std::make_unique<EmulatorRecording>();
    recording->list = std::move(list);
    return std::unique_ptr<Recording>(std::move(recording));
  }
  Result<void> submit(const Recording& recording) override {
    return submit(std::span<const Dispatch>(static_cast<const EmulatorRecording&>(recording).list));
  }

  // Dispatches between two barriers run in any order.
  Result<void> submit(std::span<const Dispatch> list) override {
    for (size_t first = 0; first < list.size();) {
      size_t end = first + 1;
      while (end < list.size() && !list[end].barrier) ++end;
      std::vector<size_t> order(end - first);
      std::iota(order.begin(), order.end(), first);
      shuffle(order);
      for (const size_t i : order) LILY_CHECK(run(list[i]));
      first = end;
    }
    return {};
  }
  Result<void> wait() override { return {}; }
  Result<uint64_t> mark() override { return uint64_t{0}; }
  Result<void> wait_for(uint64_t) override { return {}; }

 private:
  static std::byte* at(const BufferView& view) {
    assert(view.offset + view.bytes <= view.buffer->bytes());
    return view.buffer->host() + view.offset;
  }

  uint64_t next_random() {
    random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
    return random_ >> 33;
  }
  template <class T>
  void shuffle(std::vector<T>& v) {
    for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[next_random() % i]);
  }

  Result<void> run(const Dispatch& dispatch) {
    const kernels::KernelInfo& info = kernels::catalog()[dispatch.kernel];
    const emulator::HostKernel kernel = emulator::host_kernel(dispatch.kernel);
    assert(kernel && dispatch.buffers.size() == info.accesses.size() && dispatch.args.size() == info.args_bytes);
    std::vector<void*> buffers;
    for (const BufferView& view : dispatch.buffers) buffers.push_back(at(view));
    const auto [x, y, z] = dispatch.groups;
    std::vector<uint32_t> order(size_t{x} * y * z);
    std::iota(order.begin(), order.end(), 0u);
    shuffle(order);
    const uint64_t seed = next_random();
    std::mutex mutex;
    emulator::Fault fault;
    pool_.parallel_for(static_cast<int64_t>(order.size()), [&](int64_t i, int worker) {
      const uint32_t index = order[i];
      const emulator::Fault here =
          runners_[worker].run([&] { kernel(buffers.data(), dispatch.args.data()); }, info.threads,
                               {index % x, index / x % y, index / x / y}, seed + index);
      if (here.empty()) return;
      const std::lock_guard lock(mutex);
      if (fault.empty()) {
        fault = here + " in threadgroup " + std::to_string(index % x) + ", " + std::to_string(index / x % y) + ", " +
                std::to_string(index / x / y);
      }
    });
    if (fault.empty()) return {};
    return Error{.where = std::string(info.name), .what = fault, .exit_code = 1};
  }

  DeviceTraits traits_;
  ThreadPool pool_;
  uint64_t random_;
  std::vector<emulator::ThreadgroupRunner> runners_;
};

}  // namespace

std::unique_ptr<Device> make_emulator(const EmulatorOptions& options) { return std::make_unique<Emulator>(options); }

}  // namespace lily::gpu
