// Memory between inaccessible pages, so that an access outside of it is noticed where it happens.
#pragma once

#include <csetjmp>
#include <cstddef>

namespace lily::gpu::emulator {

// `bytes` rounded up to 16 end at an inaccessible page. What lies around them in their first and last page is a pattern.
class GuardedMemory {
 public:
  // Contents are 0xff: NaN in every float type. Without memory: data() is null.
  explicit GuardedMemory(size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  void set_writable(bool writable);  // its pages

  // The pattern before the start and past the end is whole; restores it.
  bool check_before();
  bool check_after();

 private:
  bool check(std::byte* from, std::byte* to);

  size_t bytes_, mapped_ = 0, page_bytes_ = 0;  // page_bytes_: of the accessible pages
  std::byte* mapping_ = nullptr;
  std::byte* pages_ = nullptr;
  std::byte* data_ = nullptr;
};

// Where a thread of this process goes on after an access to memory that it has no right to.
struct MemoryTrap {
  jmp_buf place;                  // jumped to with `sprung`, as by _longjmp
  const void* address = nullptr;  // of the access

  static constexpr int sprung = 3;
};

// Null: such a fault of this thread goes to whoever handled it before the first trap was set.
void set_memory_trap(MemoryTrap* trap);

}  // namespace lily::gpu::emulator
