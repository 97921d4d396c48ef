// One row of activations times a matrix: what decoding is made of. A threadgroup of 8 simdgroups takes `passes` times
// 8 * simd_rows rows of the matrix; the codes of a pass are on their way while those before it are computed.
#pragma once

#include "kernels/unit_rows.h"

namespace lily::kernels {

constexpr uint gemv_threads = 256;
constexpr uint gemv_simdgroups = 8;
constexpr uint gemv_simd_rows = 4;  // at most

// The pieces of a simdgroup's work in order: all steps of the first pass, then those of the second.
template <uint bits>
struct GemvWork {
  static constexpr uint depth = UnitDepth<bits>::depth;
  uint first_row, units, shift, steps, count;
};

template <uint bits>
FN GemvWork<bits> gemv_work(GemvArgs a, uint3 group, uint simdgroup) {
  GemvWork<bits> work;
  work.first_row = (group.x * a.passes * gemv_simdgroups + simdgroup) * a.simd_rows;
  work.units = a.cols / unit_columns;
  work.shift = group_shift(a.group_size);
  work.steps = (work.units + 32 * GemvWork<bits>::depth - 1) / (32 * GemvWork<bits>::depth);
  work.count = work.steps * a.passes;
  return work;
}

template <uint bits>
FN uint row_of(GemvWork<bits> work, GemvArgs a, uint piece) {
  return work.first_row + piece / work.steps * gemv_simdgroups * a.simd_rows;
}

// The codes of one piece. Rows behind the last are taken for the last, and not stored.
template <uint bits, uint depth>
FN void load_rows(thread UnitRows<bits, gemv_simd_rows, depth>& to, GemvWork<bits> work, GemvArgs a, uint piece,
                  uint lane, device const uint* codes, device const bf16* scales, device const bf16* biases) {
  if (piece >= work.count) return;
  const uint row = row_of(work, a, piece), step = piece % work.steps;
  UNROLL
  for (uint d = 0; d < depth; ++d) {
    const uint unit = (step * depth + d) * 32 + lane;
    UNROLL
    for (uint r = 0; r < gemv_simd_rows; ++r) {
      if (r < a.simd_rows && unit < work.units) {
        const uint from = min_u(row + r, a.rows - 1);
        load_unit(to, r * depth + d, codes, scales, biases, from * work.units + unit, work.shift);
      } else {
        clear_unit(to, r * depth + d);
      }
    }
  }
}

// `panel` consecutive steps of x (times weight, where there is one) to threadgroup memory. Returns this thread's part of the
// sum of x squared.
template <uint depth, uint panel>
FN float stage_panel(threadgroup float* staged, device const float* x, device const float* weight, bool weighted,
                     uint first_step, uint cols, uint thread_index) {
  float squares = 0;
  UNROLL
  for (uint i = 0; i < panel * Staged<depth>::vectors / gemv_threads; ++i) {
    const uint f = i * gemv_threads + thread_index, column = first_step * Staged<depth>::columns + f * 4;
    float4 v;
    v.x = v.y = v.z = v.w = 0;
    if (column < cols) {
      v = load_float4(x + column);
      squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
      if (weighted) {
        const float4 w = load_float4(weight + column);
        v.x *= w.x, v.y *= w.y, v.z *= w.z, v.w *= w.w;
      }
    }
    store_float4(staged + staged_place(f) * 4, v);
  }
  return squares;
}

// The products of a pass to y, and zero for the next.
template <bool norm>
FN void finish_rows(thread float* products, device float* y, uint row, GemvArgs a, threadgroup const float* sums,
                    uint lane) {
  float scale = 1;
  if (norm) {
    float sum = 0;
    for (uint s = 0; s < gemv_simdgroups; ++s) sum += sums[s];
    scale = rsqrt_f(sum / float(a.cols) + a.eps);
  }
  UNROLL
  for (uint r = 0; r < gemv_simd_rows; ++r) {
    if (r >= a.simd_rows) break;
    const float product = simd_sum(products[r]) * scale;
    products[r] = 0;
    if (lane == 0 && row + r < a.rows) y[row + r] = norm ? product : y[row + r] + product;
  }
}

// y = W (x * weight) / rms(x), or y += W x. The norm is the same for all threadgroups, and cheaper to find again than to wait
// for: its factor is applied to the products at the end.
template <uint bits, uint panel, bool norm>
FN void gemv(device const float* x, device const float* weight, device const uint* codes, device const bf16* scales,
             device const bf16* biases, device float* y, GemvArgs a, threadgroup float* staged, threadgroup float* sums,
             uint3 group, uint thread_index) {
  constexpr uint depth = UnitDepth<bits>::depth;
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  const GemvWork<bits> work = gemv_work<bits>(a, group, simdgroup);
  UnitRows<bits, gemv_simd_rows, depth> rows[2];
  load_rows(rows[0], work, a, 0, lane, codes, scales, biases);
  load_rows(rows[1], work, a, 1, lane, codes, scales, biases);
  wait_for_inputs();
  x += group.y * a.cols;
  float products[gemv_simd_rows], squares = 0;
  for (uint r = 0; r < gemv_simd_rows; ++r) products[r] = 0;
  for (uint pair = 0; pair < work.count; pair += 2) {
    UNROLL
    for (uint k = 0; k < 2; ++k) {  // each buffer at its own place: to move one would be to wait for its loads
      const uint piece = pair + k, step = piece % work.steps;
      if (piece >= work.count) break;
      if (step % panel == 0 && (piece == 0 || work.steps > panel)) {
        if (piece > 0) threadgroup_sync();  // the panel before has been read
        const float part = stage_panel<depth, panel>(staged, x, weight, norm, step, a.cols, thread_index);
        if (norm && piece < work.steps) {
          squares += simd_sum(part);
          if (lane == 0) sums[simdgroup] = squares;
        }
        threadgroup_sync();
      }
      add_products(products, rows[k], a.simd_rows, staged + step % panel * Staged<depth>::floats,
                   work.units - step * depth * 32, lane);
      load_rows(rows[k], work, a, piece + 2, lane, codes, scales, biases);
      if (step + 1 == work.steps) {
        finish_rows<norm>(products, y + group.y * a.rows, row_of(work, a, piece), a, sums, lane);
      }
    }
  }
}

// Columns that stay in threadgroup memory: 2048 of a norm's input, 4096 of the others'.
template <uint bits>
struct GemvPanel {
  static constexpr uint norm = 2 / UnitDepth<bits>::depth, add = 4 / UnitDepth<bits>::depth;
  static constexpr uint norm_floats = norm * Staged<UnitDepth<bits>::depth>::floats;
  static constexpr uint add_floats = add * Staged<UnitDepth<bits>::depth>::floats;
};

#define LILY_GEMV(bits)                                                                                              \
  KERNEL(256, norm_gemv_##bits, IN(0, float, x), WEIGHTS(1, float, weight), WEIGHTS(2, uint, codes),                 \
         WEIGHTS(3, bf16, scales), WEIGHTS(4, bf16, biases), OUT(5, float, y), ARGS(6, GemvArgs, a)) {               \
    THREAD_IDS                                                                                                       \
    SHARED(float, staged, GemvPanel<bits>::norm_floats);                                                             \
    SHARED(float, sums, gemv_simdgroups);                                                                            \
    gemv<bits, GemvPanel<bits>::norm, true>(x, weight, codes, scales, biases, y, a, staged, sums, group,             \
                                            thread_index);                                                           \
  }                                                                                                                  \
  KERNEL(256, gemv_add_##bits, IN(0, float, x), WEIGHTS(1, uint, codes), WEIGHTS(2, bf16, scales),                   \
         WEIGHTS(3, bf16, biases), INOUT(4, float, y), ARGS(5, GemvArgs, a)) {                                       \
    THREAD_IDS                                                                                                       \
    SHARED(float, staged, GemvPanel<bits>::add_floats);                                                              \
    gemv<bits, GemvPanel<bits>::add, false>(x, x, codes, scales, biases, y, a, staged, staged, group, thread_index); \
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
