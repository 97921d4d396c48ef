// A device of the GPU engine on the host: slow, and strict.
#pragma once

#include "backend/gpu/device.h"

namespace lily::gpu {

struct EmulatorOptions {
  int threads = 0;    // of this process; 0: one a core
  uint64_t seed = 1;  // of the order of threads, threadgroups, and dispatches between two barriers
};

std::unique_ptr<Device> make_emulator(const EmulatorOptions& options = {});

}  // namespace lily::gpu
