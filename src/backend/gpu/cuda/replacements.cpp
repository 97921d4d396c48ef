#include "backend/gpu/cuda/replacements.h"

namespace lily::gpu::cuda {

std::vector<Replacement> replacements() {
  std::vector<Replacement> all;
  for (const std::span<const Replacement> some : {gemm_replacements(), step_replacements(), attention_replacements()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace lily::gpu::cuda
