// One row of activations times a matrix: what decoding is made of. 4 rows of the matrix a simdgroup, 16 a threadgroup.
#pragma once

#include "kernels/unit_rows.h"

namespace lily::kernels {

constexpr uint gemv_simd_rows = 4;
constexpr uint gemv_rows = 16;

// One step of the rows from `row` on. Rows behind the last are taken for the last, and not stored.
template <uint bits, uint depth>
FN void load_rows(thread UnitRows<bits, gemv_simd_rows, depth>& to, uint step, uint lane, uint row, GemvArgs a,
                  device const uint* codes, device const bf16* scales, device const bf16* biases) {
  const uint units = a.cols / unit_columns, shift = group_shift(a.group_size);
  UNROLL
  for (uint d = 0; d < depth; ++d) {
    const uint unit = (step * depth + d) * 32 + lane;
    UNROLL
    for (uint r = 0; r < gemv_simd_rows; ++r) {
      if (unit < units) {
        load_unit(to, r * depth + d, codes, scales, biases, min_u(row + r, a.rows - 1) * units + unit, shift);
      } else {
        clear_unit(to, r * depth + d);
      }
    }
  }
}

template <uint depth>
FN void stage_plain(threadgroup float* staged, device const float* x, uint step, uint cols, uint thread_index) {
  for (uint f = thread_index; f < Staged<depth>::vectors; f += 128) {
    const uint column = step * Staged<depth>::columns + f * 4;
    float4 v;
    v.x = v.y = v.z = v.w = 0;
    if (column < cols) v = load_float4(x + column);
    store_float4(staged + staged_place(f) * 4, v);
  }
}

// W (x * weight) / rms(x). The norm is the same for all threadgroups, and cheaper to find again than to wait for: its factor is
// applied to the products at the end.
template <uint bits>
FN void norm_gemv(device const float* x, device const float* weight, device const uint* codes,
                  device const bf16* scales, device const bf16* biases, device float* y, GemvArgs a,
                  threadgroup float* staged, threadgroup float* sums, uint3 group, uint thread_index) {
  constexpr uint depth = UnitDepth<bits>::depth;
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint row = group.x * gemv_rows + simdgroup * gemv_simd_rows;
  UnitRows<bits, gemv_simd_rows, depth> rows;
  load_rows(rows, 0, lane, row, a, codes, scales, biases);
  wait_for_inputs();
  x += group.y * a.cols;
  const float part = square_sum(x, a.cols, thread_index);
  if (lane == 0) sums[simdgroup] = part;
  float products[gemv_simd_rows];
  for (uint r = 0; r < gemv_simd_rows; ++r) products[r] = 0;
  for (uint step = 0; step * Staged<depth>::columns < a.cols; ++step) {
    if (step > 0) {
      load_rows(rows, step, lane, row, a, codes, scales, biases);
      threadgroup_sync();  // the step before has been read
    }
    stage_normed<depth>(staged, x, weight, 1, step, a.cols, thread_index);
    threadgroup_sync();
    add_products(products, rows, staged, a.cols / unit_columns - step * depth * 32, lane);
  }
  const float scale = rsqrt_f((sums[0] + sums[1] + sums[2] + sums[3]) / float(a.cols) + a.eps);
  UNROLL
  for (uint r = 0; r < gemv_simd_rows; ++r) {
    const float product = simd_sum(products[r]);
    if (lane == 0 && row + r < a.rows) y[group.y * a.rows + row + r] = product * scale;
  }
}

// y += W x. The next step's codes are on their way while one is computed.
template <uint bits>
FN void gemv_add(device const float* x, device const uint* codes, device const bf16* scales, device const bf16* biases,
                 device float* y, GemvArgs a, threadgroup float* staged, uint3 group, uint thread_index) {
  constexpr uint depth = UnitDepth<bits>::depth;
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint row = group.x * gemv_rows + simdgroup * gemv_simd_rows;
  UnitRows<bits, gemv_simd_rows, depth> rows;
  load_rows(rows, 0, lane, row, a, codes, scales, biases);
  wait_for_inputs();
  x += group.y * a.cols;
  float products[gemv_simd_rows];
  for (uint r = 0; r < gemv_simd_rows; ++r) products[r] = 0;
  for (uint step = 0; step * Staged<depth>::columns < a.cols; ++step) {
    if (step > 0) threadgroup_sync();  // the step before has been read
    stage_plain<depth>(staged, x, step, a.cols, thread_index);
    threadgroup_sync();
    const UnitRows<bits, gemv_simd_rows, depth> now = rows;
    if ((step + 1) * Staged<depth>::columns < a.cols) load_rows(rows, step + 1, lane, row, a, codes, scales, biases);
    add_products(products, now, staged, a.cols / unit_columns - step * depth * 32, lane);
  }
  UNROLL
  for (uint r = 0; r < gemv_simd_rows; ++r) {
    const float product = simd_sum(products[r]);
    if (lane == 0 && row + r < a.rows) y[group.y * a.rows + row + r] += product;
  }
}

#define LILY_GEMV(bits)                                                                                \
  KERNEL(128, norm_gemv_##bits, IN(0, float, x), WEIGHTS(1, float, weight), WEIGHTS(2, uint, codes),   \
         WEIGHTS(3, bf16, scales), WEIGHTS(4, bf16, biases), OUT(5, float, y), ARGS(6, GemvArgs, a)) { \
    THREAD_IDS                                                                                         \
    SHARED(float, staged, Staged<UnitDepth<bits>::depth>::floats);                                     \
    SHARED(float, sums, 4);                                                                            \
    norm_gemv<bits>(x, weight, codes, scales, biases, y, a, staged, sums, group, thread_index);        \
  }                                                                                                    \
  KERNEL(128, gemv_add_##bits, IN(0, float, x), WEIGHTS(1, uint, codes), WEIGHTS(2, bf16, scales),     \
         WEIGHTS(3, bf16, biases), INOUT(4, float, y), ARGS(5, GemvArgs, a)) {                         \
    THREAD_IDS                                                                                         \
    SHARED(float, staged, Staged<UnitDepth<bits>::depth>::floats);                                     \
    gemv_add<bits>(x, codes, scales, biases, y, a, staged, group, thread_index);                       \
  }
LILY_GEMV(2)
LILY_GEMV(3)
LILY_GEMV(4)
LILY_GEMV(5)
LILY_GEMV(6)
LILY_GEMV(8)
LILY_GEMV(16)
#undef LILY_GEMV

}  // namespace lily::kernels
