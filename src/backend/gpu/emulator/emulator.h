// A device of the GPU engine on the host: slow, and strict.
#pragma once

#include <span>

#include "backend/gpu/device.h"
#include "backend/gpu/emulator/kernel_table.h"

namespace lily::gpu {

struct EmulatorOptions {
  int threads = 0;     // of this process; 0: one a core
  uint64_t seed = 1;   // of the order of threads, threadgroups, and dispatches between two barriers
  bool strict = true;  // what a kernel only reads cannot be written while it runs: some system calls a dispatch
  std::span<const emulator::KernelEntry> kernels = {};  // in place of the catalog's
};

std::unique_ptr<Device> make_emulator(const EmulatorOptions& options = {});

}  // namespace lily::gpu
