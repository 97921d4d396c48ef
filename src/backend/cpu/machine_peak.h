// What this machine can do at best, measured: the yardstick of `lily bench`.
#pragma once

#include <string>

#include "base/result.h"

namespace lily::cpu {

struct MachinePeak {
  int threads = 0;
  std::string isa;                   // of the loops that measured: "avx512", "avx2", "neon" or "portable"
  double read_bytes_per_second = 0;  // all threads stream through memory that no cache holds
  double fma_flops_per_second = 0;   // all threads multiply and add float32 in registers, 2 for each lane
};

// Takes about a second, and an eighth of the memory at most. threads: as in BackendOptions.
Result<MachinePeak> measure_machine_peak(int threads);

}  // namespace lily::cpu
