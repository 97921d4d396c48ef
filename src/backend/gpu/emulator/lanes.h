// Runs a kernel of the host dialect: the threads of a threadgroup are fibers of one thread of this process.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace lily::gpu::emulator {

// What went wrong in a threadgroup, in words: threads that wait for different things, or for one that has ended; accesses to
// memory that is not the kernel's; writes outside of an array in threadgroup memory; too much of it.
using Fault = std::string;

// What an access to `address`, which failed, was an access to: "4 bytes past the end of buffer 1".
using ExplainAddress = std::function<std::string(const void* address)>;

class ThreadgroupRunner {
 public:
  ThreadgroupRunner();
  ~ThreadgroupRunner();

  // Runs `kernel` in `threads` fibers (a multiple of 32, at most 1024) as the threadgroup at `group`; `seed` decides which
  // thread goes on wherever more than one can. Empty: no fault.
  Fault run(const std::function<void()>& kernel, uint32_t threads, std::array<uint32_t, 3> group, uint64_t seed,
            const ExplainAddress& explain = {});

  struct Threadgroup;

 private:
  std::unique_ptr<Threadgroup> threadgroup_;
};

// Threadgroup memory of a kernel at most, in bytes: Metal's limit.
constexpr size_t threadgroup_bytes = 32768;

}  // namespace lily::gpu::emulator
