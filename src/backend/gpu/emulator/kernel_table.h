// The kernels as host functions.
#pragma once

#include <cstddef>

namespace lily::gpu::emulator {

// One thread of the kernel with this number; `buffers` in the kernel's order.
using HostKernel = void (*)(void* const* buffers, const void* args);
HostKernel host_kernel(int kernel);  // null where the kernel does not exist

}  // namespace lily::gpu::emulator
