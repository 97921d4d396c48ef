// What the GPU engine asks of a device: memory, and lists of dispatches that it runs in order. Metal, CUDA and the emulator
// implement it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace lily::gpu {

// Memory of a device. It may be freed while commands that use it run: the device waits.
class Buffer {
 public:
  virtual ~Buffer() = default;
  size_t bytes() const { return bytes_; }
  std::byte* host() const { return host_; }  // where the host can read and write it too; else null

 protected:
  explicit Buffer(size_t bytes, std::byte* host = nullptr) : bytes_(bytes), host_(host) {}

 private:
  size_t bytes_;
  std::byte* host_;
};

struct BufferView {
  const Buffer* buffer = nullptr;
  size_t offset = 0;  // bytes; a multiple of 16
  size_t bytes = 0;

  BufferView part(size_t first, size_t count) const { return {buffer, offset + first, count}; }
};

// One run of a kernel of kernels/catalog.h.
struct Dispatch {
  int kernel = -1;
  std::array<uint32_t, 3> groups = {1, 1, 1};  // threadgroups
  std::vector<BufferView> buffers;
  std::vector<std::byte> args;
  bool barrier = false;  // everything before it in the list must have ended
  bool early = true;     // it may start before that, up to its wait_for_inputs()
};

// A list that the device keeps ready to run again: a graph in CUDA.
class Recording {
 public:
  virtual ~Recording() = default;
};

struct DeviceTraits {
  std::string name;   // "NVIDIA H200"
  int cores = 1;      // multiprocessors
  size_t memory = 0;  // bytes that can be allocated
  bool unified_memory = false;
};

// Everything submitted runs in order of submission; `wait` ends when all of it has. Errors of the device (lost, out of
// memory) come from the next call that can tell them.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceTraits& traits() const = 0;

  // Contents are undefined.
  virtual Result<std::unique_ptr<Buffer>> allocate(size_t bytes) = 0;
  // Small memory that the host sees as well: tokens go through it. Read it after wait_for.
  virtual Result<std::unique_ptr<Buffer>> allocate_visible(size_t bytes) = 0;

  virtual Result<void> upload(const BufferView& to, std::span<const std::byte> from) = 0;  // `from` may go away
  virtual Result<void> download(const BufferView& from, std::span<std::byte> to) = 0;      // waits
  virtual Result<void> copy(const BufferView& from, const BufferView& to) = 0;
  virtual Result<void> fill_zero(const BufferView& view) = 0;

  virtual Result<std::unique_ptr<Recording>> record(std::vector<Dispatch> list) = 0;
  virtual Result<void> submit(const Recording& recording) = 0;
  virtual Result<void> submit(std::span<const Dispatch> list) = 0;  // once
  virtual Result<void> wait() = 0;

  // A mark is passed when everything submitted before it has ended.
  virtual Result<uint64_t> mark() = 0;
  virtual Result<void> wait_for(uint64_t mark) = 0;
};

}  // namespace lily::gpu
