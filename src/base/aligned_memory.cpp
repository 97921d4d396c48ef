#include "base/aligned_memory.h"

#include <cstdint>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace lily {
namespace {

std::byte* align(std::byte* data, size_t alignment) {
  return data + (alignment - reinterpret_cast<uintptr_t>(data) % alignment) % alignment;
}

#ifdef __linux__
constexpr size_t mapped = size_t{2} << 20;  // from an alignment of this on, what is left over around would be too much

// Pages of its own, all of which free_aligned gives back: what lies around them goes at once.
size_t pages_of(size_t bytes) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

void* map_pages(size_t bytes, size_t alignment) {
  const size_t kept = pages_of(bytes), whole = kept + alignment;
  void* pages = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(pages);
  std::byte* data = align(begin, alignment);
  if (data != begin) ::munmap(begin, static_cast<size_t>(data - begin));
  if (data + kept != begin + whole) ::munmap(data + kept, static_cast<size_t>(begin + whole - data) - kept);
  return data;
}
#endif

}  // namespace

void* allocate_aligned(size_t bytes, size_t alignment) {
#ifdef __linux__
  if (alignment >= mapped) return map_pages(bytes, alignment);
#endif
  // Behind at least one pointer, to what is to be freed.
  auto* whole = static_cast<std::byte*>(::operator new(bytes + alignment + sizeof(void*)));
  std::byte* data = align(whole + sizeof(void*), alignment);
  reinterpret_cast<void**>(data)[-1] = whole;
  return data;
}

void free_aligned(void* data, [[maybe_unused]] size_t bytes, [[maybe_unused]] size_t alignment) {
  if (!data) return;
#ifdef __linux__
  if (alignment >= mapped) {
    ::munmap(data, pages_of(bytes));
    return;
  }
#endif
  ::operator delete(static_cast<void**>(data)[-1]);
}

}  // namespace lily
