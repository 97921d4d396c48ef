#include "backend/gpu/tuning.h"

namespace lily::gpu {

Tuning default_tuning(const DeviceTraits& traits, const ModelConfig& config) {
  Tuning tuning;
  while (tuning.max_splits * 2 * static_cast<uint32_t>(config.num_kv_heads) <= static_cast<uint32_t>(traits.cores)) {
    tuning.max_splits *= 2;  // a threadgroup a core
  }
  tuning.gemv_groups = static_cast<uint32_t>(traits.cores);
  if (traits.unified_memory) return tuning;
  // A card has many cores and memory of its own: context is split early, and chunks are long.
  tuning.prefill_chunk = 4096;
  tuning.split_tokens = 64;
  tuning.sample_parts = 128;
  return tuning;
}

}  // namespace lily::gpu
