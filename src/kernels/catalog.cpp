#include "kernels/catalog.h"

#include <cassert>

#include "kernels/list.h"

namespace lily::kernels {
namespace {

#define LILY_INFO(name, threads, accesses, args) {#name, threads, accesses, sizeof(args)},
constexpr KernelInfo all[] = {LILY_KERNELS(LILY_INFO)};
#undef LILY_INFO

}  // namespace

std::span<const KernelInfo> catalog() { return all; }

int find_kernel(std::string_view name) {
  for (size_t i = 0; i < std::size(all); ++i) {
    if (all[i].name == name) return static_cast<int>(i);
  }
  assert(!"no such kernel");
  return -1;
}

}  // namespace lily::kernels
