// Intel's tile registers, on Linux.
#pragma once

#include "backend/cpu/kernels.h"

namespace lily::cpu {

// Asks the system for the registers, for this process and its later threads; false where it refuses.
bool enable_amx();

void gemm_amx(const Panels& w, const SplitRows& x, const Upcoming& next, float* out, int64_t stride);

}  // namespace lily::cpu
