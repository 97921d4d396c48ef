#include "backend/gpu/cuda/replacements.h"

namespace lily::gpu::cuda {

std::span<const Replacement> replacements() { return {}; }

}  // namespace lily::gpu::cuda
