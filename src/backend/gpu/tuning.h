// Numbers of the schedules that differ between devices.
#pragma once

#include <cstdint>

#include "backend/gpu/device.h"
#include "model/config.h"

namespace lily::gpu {

struct Tuning {
  uint32_t prefill_chunk = 2048;  // tokens computed together
  uint32_t split_tokens = 32768;  // of context for one threadgroup of decode attention, before it is split
  uint32_t max_splits = 1;        // threadgroups a KV head; a power of two
  uint32_t gemv_groups = 1;       // threadgroups that a product of one row is cut into, as far as it has the rows
  uint32_t sample_parts = 32;     // of the vocabulary
  bool concurrent = true;         // independent operations run side by side
};

// How the rows of a matrix are dealt to `groups` threadgroups of 8 simdgroups for the product with one row.
struct RowCut {
  uint32_t simd_rows;  // of a simdgroup at a time, 1 to 4
  uint32_t passes;
  uint32_t groups;  // threadgroups that it takes
};

// The same for each as far as it can be, and few passes of many rows rather than many of few.
RowCut cut_rows(uint32_t rows, uint32_t groups);

Tuning default_tuning(const DeviceTraits& traits, const ModelConfig& config);

}  // namespace lily::gpu
