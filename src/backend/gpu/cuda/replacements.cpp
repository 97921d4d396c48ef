#include "backend/gpu/cuda/replacements.h"

namespace lily::gpu::cuda {

std::span<const Replacement> replacements() { return gemm_replacements(); }

}  // namespace lily::gpu::cuda
