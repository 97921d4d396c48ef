// Kernels that CUDA has in a faster form of its own. They take the buffers and arguments of the portable kernel whose place they
// take, and its tests are theirs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lily::gpu::cuda {

struct Replacement {
  std::string_view kernel;  // of the catalog; where this build's has none of the name, the replacement is idle
  const void* function = nullptr;
  unsigned threads = 0;
  size_t shared_bytes = 0;      // dynamic; a GPU with less keeps the portable kernel
  int compute_capability = 80;  // 10 * major + minor, at least

  // The grid, from the kernel's arguments and the portable kernel's grid.
  std::array<uint32_t, 3> (*grid)(const void* args, const std::array<uint32_t, 3>& portable) = nullptr;
  // Whether it has the shapes of these arguments; null: it has all. Of several that do, the last one runs.
  bool (*applies)(const void* args) = nullptr;
};

std::vector<Replacement> replacements();  // all of them
std::span<const Replacement> gemm_replacements();
std::span<const Replacement> step_replacements();
std::span<const Replacement> attention_replacements();

}  // namespace lily::gpu::cuda
