// The kernels as host functions.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/catalog.h"

namespace lily::gpu::emulator {

// One thread of a kernel; `buffers` in the kernel's order.
using HostKernel = void (*)(void* const* buffers, const void* args);

struct KernelEntry {
  kernels::KernelInfo info;
  HostKernel run = nullptr;
};

// Those of kernels/catalog.h, by their numbers.
std::span<const KernelEntry> kernel_table();

}  // namespace lily::gpu::emulator
