// The kernels as CUDA knows them.
#pragma once

namespace lily::gpu::cuda {

// The portable kernel with this number, for cudaLaunchKernelExC: its buffers, then its arguments.
const void* portable_kernel(int kernel);

}  // namespace lily::gpu::cuda
