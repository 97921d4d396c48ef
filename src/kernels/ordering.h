// Logits as unsigned keys of the same order, and sums over the lanes of a simdgroup.
#pragma once

namespace lily::kernels {

// Larger logit, larger key. NaN has the smallest key, 0, by its bits: fast maths may assume that there is none.
FN uint order_key(float logit) {
  const uint bits = as_uint(logit), magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0;
  if (magnitude == 0) return 0x80000000u;  // both zeros are equal
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
FN float key_logit(uint key) { return as_float((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key); }

// How many of four keys come before `key` of place `place`: larger ones, and equal ones at lower places. The four are those of
// places first to first + 3.
FN uint count_before(uint4 keys, uint first, uint key, uint place) {
  return uint(keys.x >= key + uint(first >= place)) + uint(keys.y >= key + uint(first + 1 >= place)) +
         uint(keys.z >= key + uint(first + 2 >= place)) + uint(keys.w >= key + uint(first + 3 >= place));
}

FN uint lanes_below(uint lane) { return (1u << lane) - 1; }

FN uint simd_total(uint v) {
  UNROLL
  for (uint mask = 16; mask > 0; mask /= 2) v += simd_shuffle_xor(v, mask);
  return v;
}

// The sum over this lane and those below.
FN uint simd_prefix_sum(uint v, uint lane) {
  UNROLL
  for (uint step = 1; step < 32; step *= 2) {
    const uint other = simd_shuffle(v, lane >= step ? lane - step : lane);
    v += lane >= step ? other : 0;
  }
  return v;
}
FN float simd_prefix_sum(float v, uint lane) {
  UNROLL
  for (uint step = 1; step < 32; step *= 2) {
    const float other = simd_shuffle(v, lane >= step ? lane - step : lane);
    v += lane >= step ? other : 0;
  }
  return v;
}

}  // namespace lily::kernels
