// A device of the GPU engine over the CUDA runtime. No header of CUDA is needed to include this.
#pragma once

#include <memory>

#include "backend/gpu/device.h"

namespace lily::gpu::cuda {

// The first GPU that the driver shows. An error where there is no driver, no GPU, or none that this build has kernels for.
Result<std::unique_ptr<Device>> open();

}  // namespace lily::gpu::cuda
