// Vectors whose data starts at a cache line, so that a vector load never touches two; long ones ask for huge pages, since
// looking up addresses is a part of what a pass over memory costs.
#pragma once

#include <cstddef>
#include <vector>

#include "base/aligned_memory.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace lily {

template <class T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr size_t line = 64, huge_page = size_t{2} << 20;

  CacheLineAllocator() = default;
  template <class U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}

  static size_t alignment(size_t n) { return n * sizeof(T) < huge_page ? line : huge_page; }

  T* allocate(size_t n) {
    void* data = allocate_aligned(n * sizeof(T), alignment(n));
#ifdef MADV_HUGEPAGE
    if (n * sizeof(T) >= huge_page) ::madvise(data, n * sizeof(T), MADV_HUGEPAGE);
#endif
    return static_cast<T*>(data);
  }
  void deallocate(T* p, size_t n) { free_aligned(p, n * sizeof(T), alignment(n)); }

  template <class U>
  bool operator==(const CacheLineAllocator<U>&) const {
    return true;
  }
};

template <class T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace lily
