#include "backend/gpu/tuning.h"

#include <algorithm>

namespace lily::gpu {

RowCut cut_rows(uint32_t rows, uint32_t groups) {
  const auto ceil_div = [](uint32_t a, uint32_t b) { return (a + b - 1) / b; };
  const uint32_t each = ceil_div(rows, 8 * groups);  // of a simdgroup
  RowCut cut{std::min(each, 4u), 0, 0};
  cut.passes = ceil_div(each, cut.simd_rows);
  for (uint32_t fewer = cut.simd_rows - 1; fewer > 1; --fewer) {
    const uint32_t passes = ceil_div(each, fewer);
    if (passes * fewer < cut.passes * cut.simd_rows) cut = {fewer, passes, 0};
  }
  cut.groups = ceil_div(rows, 8 * cut.simd_rows * cut.passes);
  return cut;
}

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

std::span<const NamedMechanism> named_mechanisms() {
  using M = Mechanisms;
  static const NamedMechanism all[] = {
      {{"fused-dequantisation", true, false}, &M::fused_dequantisation},
      {{"resident-routing", true, false}, &M::resident_routing},
      {{"adaptive-tile", true, false}, &M::adaptive_tile},
      {{"register-scan", true, false, 128}, &M::register_scan},  // a dispatch a token and layer
      {{"chunking", true, false}, &M::chunking},
      {{"token-handoff", false, true}, &M::token_handoff},
      {{"concurrency", true, true}, &M::concurrency},
      {{"gate-up-fusion", false, true}, &M::gate_up_fusion},
      {{"down-fusion", false, true}, &M::down_fusion},
      {{"qk-fusion", false, true}, &M::qk_fusion},
      {{"norm-fusion", false, true}, &M::norm_fusion},
      {{"coalesced-kv", false, true}, &M::coalesced_kv},
      {{"gqa-packing", false, true}, &M::gqa_packing},
      {{"split-attention", false, true}, &M::split_attention},
  };
  return all;
}

}  // namespace lily::gpu
