// Rows by themselves: the embedding's gather, and RMSNorm.
#pragma once

#include "kernels/gemm.h"
#include "kernels/gemv.h"

namespace lily::kernels {

// 1 / sqrt(mean(x^2) + eps) of one row, by 256 threads. sums [8] in threadgroup memory.
FN float norm_factor(device const float* row, NormArgs a, threadgroup float* sums, uint thread_index) {
  float sum = 0;
  for (uint i = thread_index; i < a.cols; i += 256) sum += row[i] * row[i];
  sum = simd_sum(sum);
  if (thread_index % 32 == 0) sums[thread_index / 32] = sum;
  threadgroup_sync();
  sum = 0;
  for (uint i = 0; i < 8; ++i) sum += sums[i];
  return rsqrt_f(sum / float(a.cols) + a.eps);
}

// y = x / sqrt(mean(x^2) + eps) * weight, for one row.
KERNEL(256, rms_norm, IN(0, float, x), WEIGHTS(1, float, weight), OUT(2, bf16, y), ARGS(3, NormArgs, a)) {
  THREAD_IDS
  SHARED(float, sums, 8);
  wait_for_inputs();
  device const float* row = x + group.x * a.cols;
  const float scale = norm_factor(row, a, sums, thread_index);
  for (uint i = thread_index; i < a.cols; i += 256) y[group.x * a.cols + i] = to_bf16(row[i] * scale * weight[i]);
}

// Row tokens[group.y] of the embedding in float32, a unit of 32 columns a thread at a time.
template <uint bits>
FN void embed(device const int* tokens, device const uint* codes, device const bf16* scales, device const bf16* biases,
              device float* x, EmbedArgs a, uint3 group, uint thread_index) {
  const uint units = a.cols / unit_columns, token = uint(tokens[group.y]);
  for (uint place = thread_index; place < units; place += 128) {
    UnitRows<bits, 1, 1> unit;
    load_unit(unit, 0, codes, scales, biases, token * units + place, group_shift(a.group_size));
    device float* to = x + group.y * a.cols + place * unit_columns;
    UNROLL
    for (uint i = 0; i < unit_columns; ++i) {
      if (bits == 16) {
        const float2 w = unpack_bf16(unit.words[i / 2]);
        to[i] = i % 2 == 0 ? w.x : w.y;
      } else {
        to[i] = code_value<bits>(unit.words, i) * to_float(unit.scale[0]) + to_float(unit.bias[0]);
      }
    }
  }
}

#define LILY_EMBED(bits)                                                                           \
  KERNEL(128, embed_##bits, IN(0, int, tokens), WEIGHTS(1, uint, codes), WEIGHTS(2, bf16, scales), \
         WEIGHTS(3, bf16, biases), OUT(4, float, x), ARGS(5, EmbedArgs, a)) {                      \
    THREAD_IDS                                                                                     \
    wait_for_inputs();                                                                             \
    embed<bits>(tokens, codes, scales, biases, x, a, group, thread_index);                         \
  }
LILY_EMBED(2)
LILY_EMBED(3)
LILY_EMBED(4)
LILY_EMBED(5)
LILY_EMBED(6)
LILY_EMBED(8)
LILY_EMBED(16)
#undef LILY_EMBED

}  // namespace lily::kernels
