// How fast this device multiplies tiles that are already in threadgroup memory: the most that a matrix product can reach.
#pragma once

namespace lily::kernels {

// Each simdgroup multiplies a [64, 64] tile of a by one of b `loops` times. out f32 [threadgroups].
KERNEL(128, measure_tiles, OUT(0, float, out), ARGS(1, PeakArgs, args)) {
  THREAD_IDS
  constexpr uint ld = 72;  // 64 and a pad that spreads rows over the banks
  SHARED(bf16, a, 64 * ld);
  SHARED(bf16, b, 64 * ld);
  // Like weights and activations, not zeros, which multiply faster.
  for (uint i = thread_index; i < 64 * ld; i += 128) {
    a[i] = to_bf16(float((i * 2654435761u) >> 24) * 0.01f - 1.27f);
    b[i] = to_bf16(float((i * 2246822519u) >> 24) * 0.01f - 1.27f);
  }
  wait_for_inputs();
  threadgroup_sync();
  Tile<64, 64> tile;
  tile_zero(tile);
  for (uint i = 0; i < args.loops; ++i) tile_mma<64, 64, 64>(tile, a, ld, b, ld);
  float sum = 0;
  for (uint i = 0; i < 64 * 64 / 32; ++i) sum += tile.value[i];
  sum = simd_sum(sum);
  if (thread_index == 0) out[group.x] = sum;
}

}  // namespace lily::kernels
