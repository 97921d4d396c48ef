// The plain forms of what the engine fuses or keeps on the chip, for `lily bench --ablate`: each does one thing and leaves its
// result in memory.
#pragma once

#include "kernels/delta.h"
#include "kernels/dense.h"
#include "kernels/gemm.h"
#include "kernels/unit_rows.h"

namespace lily::kernels {

// `units` units of a matrix as bf16 weights, those that gemm_tile would have made. `after` is not read: it says what must have
// ended.
template <uint bits>
FN void dequantize(device const uint* codes, device const bf16* scales, device const bf16* biases,
                   device const uint* after, device bf16* y, DequantizeArgs a, uint index) {
  (void)after;
  if (index >= a.units) return;
  UnitRows<bits, 1, 1> unit;
  load_unit(unit, 0, codes, scales, biases, a.first_unit + index, group_shift(a.group_size));
  const float scale = to_float(unit.scale[0]), bias = to_float(unit.bias[0]);
  UNROLL
  for (uint i = 0; i < unit_columns; i += 8) {
    uint packed[4];
    UNROLL
    for (uint j = 0; j < 4; ++j) {
      packed[j] = pack_bf16(code_value<bits>(unit.words, i + 2 * j) * scale + bias,
                            code_value<bits>(unit.words, i + 2 * j + 1) * scale + bias);
    }
    uint4 v;
    v.x = packed[0], v.y = packed[1], v.z = packed[2], v.w = packed[3];
    store_uint4(y + index * unit_columns + i, v);
  }
}

constexpr uint product_rows = 4;  // of a simdgroup; 16 of a threadgroup

// y[pair] = W[choices[pair]] . x: one expert's matrix for each (token, slot), 16 rows a threadgroup.
template <uint bits>
FN void expert_product(device const float* x, device const uint* choices, device const uint* codes,
                       device const bf16* scales, device const bf16* biases, device float* y, ProductArgs a,
                       threadgroup float* staged, uint3 group, uint thread_index) {
  constexpr uint depth = UnitDepth<bits>::depth;
  const uint lane = thread_index % 32, simdgroup = thread_index / 32, pair = group.z * a.slots + group.y;
  const uint row = (group.x * 4 + simdgroup) * product_rows, units = a.cols / unit_columns;
  const uint first = (choices[pair] * a.rows + row) * units, shift = group_shift(a.group_size);
  x += (a.x_by_slot != 0 ? pair : group.z) * a.cols;
  float products[product_rows];
  for (uint r = 0; r < product_rows; ++r) products[r] = 0;
  for (uint step = 0; step * Staged<depth>::columns < a.cols; ++step) {
    UnitRows<bits, product_rows, depth> rows;
    UNROLL
    for (uint i = 0; i < product_rows * depth; ++i) {
      const uint r = i / depth, unit = (step * depth + i % depth) * 32 + lane;
      if (row + r < a.rows && unit < units) {
        load_unit(rows, i, codes, scales, biases, first + r * units + unit, shift);
      } else {
        clear_unit(rows, i);
      }
    }
    if (step > 0) threadgroup_sync();  // the step before has been read
    for (uint f = thread_index; f < Staged<depth>::vectors; f += 128) {
      const uint column = step * Staged<depth>::columns + f * 4;
      float4 v;
      v.x = v.y = v.z = v.w = 0;
      if (column < a.cols) v = load_float4(x + column);
      store_float4(staged + staged_place(f) * 4, v);
    }
    threadgroup_sync();
    add_products(products, rows, product_rows, staged, units - step * depth * 32, lane);
  }
  UNROLL
  for (uint r = 0; r < product_rows; ++r) {
    const float product = simd_sum(products[r]);
    if (lane == 0 && row + r < a.rows) y[pair * a.rows + row + r] = product;
  }
}

#define LILY_DEQUANTIZE(bits)                                                                                 \
  KERNEL(256, dequantize_##bits, WEIGHTS(0, uint, codes), WEIGHTS(1, bf16, scales), WEIGHTS(2, bf16, biases), \
         IN(3, uint, after), OUT(4, bf16, y), ARGS(5, DequantizeArgs, a)) {                                   \
    THREAD_IDS                                                                                                \
    wait_for_inputs();                                                                                        \
    dequantize<bits>(codes, scales, biases, after, y, a, group.x * 256 + thread_index);                       \
  }
LILY_DEQUANTIZE(2)
LILY_DEQUANTIZE(3)
LILY_DEQUANTIZE(4)
LILY_DEQUANTIZE(5)
LILY_DEQUANTIZE(6)
LILY_DEQUANTIZE(8)
#undef LILY_DEQUANTIZE

#define LILY_EXPERT_PRODUCT(bits)                                                                         \
  KERNEL(128, expert_product_##bits, IN(0, float, x), IN(1, uint, choices), WEIGHTS(2, uint, codes),      \
         WEIGHTS(3, bf16, scales), WEIGHTS(4, bf16, biases), OUT(5, float, y), ARGS(6, ProductArgs, a)) { \
    THREAD_IDS                                                                                            \
    SHARED(float, staged, Staged<UnitDepth<bits>::depth>::floats);                                        \
    wait_for_inputs();                                                                                    \
    expert_product<bits>(x, choices, codes, scales, biases, y, a, staged, group, thread_index);           \
  }
LILY_EXPERT_PRODUCT(2)
LILY_EXPERT_PRODUCT(3)
LILY_EXPERT_PRODUCT(4)
LILY_EXPERT_PRODUCT(5)
LILY_EXPERT_PRODUCT(6)
LILY_EXPERT_PRODUCT(8)
LILY_EXPERT_PRODUCT(16)
#undef LILY_EXPERT_PRODUCT

// rms_norm with a float32 result, for decode.
KERNEL(256, rms_norm_float, IN(0, float, x), WEIGHTS(1, float, weight), OUT(2, float, y), ARGS(3, NormArgs, a)) {
  THREAD_IDS
  SHARED(float, sums, 8);
  wait_for_inputs();
  device const float* row = x + group.x * a.cols;
  const float scale = norm_factor(row, a, sums, thread_index);
  for (uint i = thread_index; i < a.cols; i += 256) y[group.x * a.cols + i] = row[i] * scale * weight[i];
}

// y = silu(gate) * up
KERNEL(256, silu_multiply, IN(0, float, gate), IN(1, float, up), OUT(2, float, y), ARGS(3, CountArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  const uint i = group.x * 256 + thread_index;
  if (i < a.count) y[i] = silu(gate[i]) * up[i];
}

// x[t] += sum over slots of weight * z
KERNEL(256, weighted_sum, IN(0, float, z), IN(1, float, weights), INOUT(2, float, x), ARGS(3, CombineArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  const uint column = group.x * 256 + thread_index, token = group.y;
  if (column >= a.hidden) return;
  float sum = 0;
  for (uint s = 0; s < a.slots; ++s) {
    sum += weights[token * a.slots + s] * z[(token * a.slots + s) * a.hidden + column];
  }
  x[token * a.hidden + column] += sum;
}

// delta_step up to its norm: one token of one value head, 8 rows of the state a simdgroup. The output is raw.
KERNEL(512, delta_update, IN(0, float, projections), WEIGHTS(1, float, conv), WEIGHTS(2, float, a_log),
       WEIGHTS(3, float, dt_bias), IN(4, float, history), OUT(5, float, history_out), IN(6, float, state),
       OUT(7, float, state_out), OUT(8, float, o), ARGS(9, DeltaArgs, a)) {
  THREAD_IDS
  SHARED(float, vectors, 3 * linear_dim);  // q, k, v: convolved
  SHARED(float, squares, 16);              // of each simdgroup's part
  wait_for_inputs();
  const uint head = group.x, heads_per_key = a.value_heads / a.key_heads, key_head = head / heads_per_key;
  const uint channels = delta_channels(a), part = thread_index / linear_dim, place = thread_index % linear_dim;
  const uint first = (head * linear_dim + simdgroup * 8) * linear_dim + lane * 4;
  float4 s[8];
  UNROLL
  for (uint r = 0; r < 8; ++r) s[r] = load_float4(state + first + r * linear_dim);
  float square = 0;
  if (part < 3) {
    const uint vector = part == 0 ? key_head : part == 1 ? a.key_heads + key_head : 2 * a.key_heads + head;
    const uint channel = vector * linear_dim + place;
    const float mine = projections[channel];
    float sum = conv[history_rows * channels + channel] * mine;
    for (uint j = 0; j < history_rows; ++j) {
      const float past = history[j * channels + channel];
      sum += conv[j * channels + channel] * past;
      if (j > 0 && (part == 2 || head % heads_per_key == 0)) history_out[(j - 1) * channels + channel] = past;
    }
    if (part == 2 || head % heads_per_key == 0) history_out[(history_rows - 1) * channels + channel] = mine;
    vectors[thread_index] = silu(sum);
    square = silu(sum) * silu(sum);
  }
  square = simd_sum(square);
  if (lane == 0) squares[simdgroup] = square;
  threadgroup_sync();
  device const float* gates = projections + channels + a.value_heads * linear_dim;
  const float decay = decay_of(exp_f(a_log[head]) * softplus(gates[a.value_heads + head] + dt_bias[head]));
  const float beta = sigmoid(gates[head]);
  const float q_scale = query_scale(squares[0] + squares[1] + squares[2] + squares[3]);
  const float k_scale = unit_scale(squares[4] + squares[5] + squares[6] + squares[7]);
  const float4 q = load_float4(vectors + lane * 4), k = load_float4(vectors + linear_dim + lane * 4);
  UNROLL
  for (uint r = 0; r < 8; ++r) {
    const uint row = simdgroup * 8 + r;
    const float recalled = decay * k_scale * simd_sum(dot_four(s[r], k));
    const float update = beta * (vectors[2 * linear_dim + row] - recalled);
    const float4 next = updated(s[r], decay, update * k_scale, k);
    store_float4(state_out + first + r * linear_dim, next);
    const float read = q_scale * simd_sum(dot_four(next, q));
    if (lane == 0) o[head * linear_dim + row] = read;
  }
}

// y = o / rms(o) * norm * silu(z), for one value head.
KERNEL(128, norm_gate, IN(0, float, o), IN(1, float, projections), WEIGHTS(2, float, norm), OUT(3, float, y),
       ARGS(4, DeltaArgs, a)) {
  THREAD_IDS
  SHARED(float, sums, 4);
  wait_for_inputs();
  const uint place = group.x * linear_dim + thread_index;
  const float value = o[place], square = simd_sum(value * value);
  if (lane == 0) sums[simdgroup] = square;
  threadgroup_sync();
  const float total = sums[0] + sums[1] + sums[2] + sums[3];
  y[place] = value * rsqrt_f(total / float(linear_dim) + a.eps) * norm[thread_index] *
             silu(projections[delta_channels(a) + place]);
}

}  // namespace lily::kernels
