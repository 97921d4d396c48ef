// What a device would be given for a model, counted without the device and without weights.
#pragma once

#include <map>
#include <string>

#include "backend/gpu/planner.h"
#include "backend/gpu/tuning.h"
#include "base/result.h"
#include "model/config.h"

namespace lily::gpu {

struct PlanReport {
  int kernels = 0;                // dispatches
  int stages = 0;                 // sequential ones: all wait between two of them
  size_t intermediate_bytes = 0;  // written by kernels for later ones
  size_t temporary_bytes = 0;     // memory that holds them
  std::map<std::string, int> by_kernel;
};

// One decode step after `depth` tokens, its token sampled on the device. `device`: "cuda", "metal" or "emulator".
Result<PlanReport> report_decode(const ModelConfig& config, const std::string& device, int64_t depth,
                                 const Mechanisms& mechanisms = {});

// One chunk of `tokens` tokens of a prompt, up to the logits of the last.
Result<PlanReport> report_prefill(const ModelConfig& config, const std::string& device, int64_t tokens,
                                  const Mechanisms& mechanisms = {});

}  // namespace lily::gpu
