// Matrices times rows: embedding gather, RMSNorm, GEMV and GEMM with weights taken from their codes on the way.
#pragma once

#include "kernels/quantized.h"

namespace lily::kernels {

// y = x / sqrt(mean(x^2) + eps) * weight, for one row.
KERNEL(256, rms_norm, IN(0, float, x), WEIGHTS(1, float, weight), OUT(2, bf16, y), ARGS(3, NormArgs, a)) {
  THREAD_IDS
  SHARED(float, sums, 8);
  wait_for_inputs();
  device const float* row = x + group.x * a.cols;
  float sum = 0;
  for (uint i = thread_index; i < a.cols; i += 256) sum += row[i] * row[i];
  sum = simd_sum(sum);
  if (lane == 0) sums[simdgroup] = sum;
  threadgroup_sync();
  sum = 0;
  for (uint i = 0; i < 8; ++i) sum += sums[i];
  const float scale = rsqrt_f(sum / float(a.cols) + a.eps);
  for (uint i = thread_index; i < a.cols; i += 256) y[group.x * a.cols + i] = to_bf16(row[i] * scale * weight[i]);
}

}  // namespace lily::kernels
