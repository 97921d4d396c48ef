// Memory at an aligned address that an allocation of the same size takes again when it is freed.
#pragma once

#include <cstddef>

namespace lily {

// glibc's own aligned allocation does not: it looks for a piece that holds `alignment` bytes more than it then takes, so what
// was freed never fits, and a server that drops and makes states grows without end. Throws std::bad_alloc.
// `alignment`: a power of two, at least that of a pointer.
void* allocate_aligned(size_t bytes, size_t alignment);
void free_aligned(void* data, size_t bytes, size_t alignment);

}  // namespace lily
