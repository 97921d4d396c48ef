// Gated DeltaNet between its projections and its output matrix: causal convolution, gated delta rule, norm and gate.
//
// The rule, on a value head's state S [V, K]: S <- decay S; u = beta (v - S k); S <- S + u k^T; o = S q. A value's row of S is
// independent of the others.
#pragma once

#include "kernels/activations.h"

namespace lily::kernels {

constexpr uint delta_block = 16;  // tokens of a threadgroup (delta_prepare, delta_norm) or of a stage (delta_scan)
constexpr uint delta_pass = 4;    // of them that a simdgroup takes at a time
constexpr uint history_rows = conv_taps - 1;

// To unit length, from the sum of squares; and 1 / sqrt(K) for queries.
FN float unit_scale(float squares) { return rsqrt_f(squares + 1e-6f); }
FN float query_scale(float squares) { return 0.08838834764831845f * unit_scale(squares); }

FN uint delta_channels(DeltaArgs a) { return (2 * a.key_heads + a.value_heads) * linear_dim; }
FN float dot_four(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

// Of 2 * count values a lane keeps one half, to which it adds what its partner, lane ^ mask, has of it; the partner keeps the
// other.
template <uint count, uint mask>
FN void fold_sums(thread float* values, uint lane) {
  const bool upper = (lane & mask) != 0;
  UNROLL
  for (uint i = 0; i < count; ++i) {
    const float kept = upper ? values[i + count] : values[i], given = upper ? values[i] : values[i + count];
    values[i] = kept + simd_shuffle_xor(given, mask);
  }
}

// 16 values of every lane, each summed over the simdgroup by 16 shuffles in all: lanes 2 i and 2 i + 1 get that of values[i].
FN float sum_sixteen(thread float* values, uint lane) {
  fold_sums<8, 16>(values, lane);
  fold_sums<4, 8>(values, lane);
  fold_sums<2, 4>(values, lane);
  fold_sums<1, 2>(values, lane);
  return values[0] + simd_shuffle_xor(values[0], 1);
}

// Eight rows of the state, four columns a lane, times k and q. Lanes 4 r to 4 r + 3 get those of row r: two of them the product
// with k, the other two that with q.
FN float row_products(thread const float4* s, float4 k, float4 q, uint lane) {
  float sums[16];
  UNROLL
  for (uint r = 0; r < 8; ++r) {
    sums[2 * r] = dot_four(s[r], k);
    sums[2 * r + 1] = dot_four(s[r], q);
  }
  return sum_sixteen(sums, lane);
}

FN float4 updated(float4 s, float decay, float update, float4 k) {
  s.x = decay * s.x + update * k.x;
  s.y = decay * s.y + update * k.y;
  s.z = decay * s.z + update * k.z;
  s.w = decay * s.w + update * k.w;
  return s;
}

// One token of one value head. A simdgroup has 8 rows of the state in registers, a lane 4 columns of each.
KERNEL(512, delta_step, IN(0, float, projections), WEIGHTS(1, float, conv), WEIGHTS(2, float, a_log),
       WEIGHTS(3, float, dt_bias), WEIGHTS(4, float, norm), IN(5, float, history), OUT(6, float, history_out),
       IN(7, float, state), OUT(8, float, state_out), OUT(9, float, y), ARGS(10, DeltaArgs, a)) {
  THREAD_IDS
  SHARED(float, vectors, 3 * linear_dim);  // q, k (not normalised), v
  SHARED(float, squares, 16);              // of each simdgroup's part of q and k; then decay and beta
  SHARED(float, outputs, linear_dim);
  SHARED(float, output_squares, 16);
  const uint head = group.x, heads_per_key = a.value_heads / a.key_heads, key_head = head / heads_per_key;
  const uint channels = delta_channels(a), part = thread_index / linear_dim, place = thread_index % linear_dim;
  // Parts 0 to 2 of the threads take q, k and v; the last takes z.
  const uint vector = part == 0 ? key_head : part == 1 ? a.key_heads + key_head : 2 * a.key_heads + head;
  const uint channel = vector * linear_dim + place;
  float taps[conv_taps];
  UNROLL
  for (uint j = 0; j < conv_taps; ++j) taps[j] = conv[j * channels + channel];
  const float rate = a_log[head], bias = dt_bias[head], norm_weight = norm[place];

  // State and history come from the step before, so they are on their way while the projections are still computed.
  float past[history_rows];
  UNROLL
  for (uint j = 0; j < history_rows; ++j) past[j] = history[j * channels + channel];
  const uint first = (head * linear_dim + simdgroup * 8) * linear_dim + lane * 4;
  float4 s[8];
  UNROLL
  for (uint r = 0; r < 8; ++r) s[r] = load_float4(state + first + r * linear_dim);
  wait_for_inputs();
  device const float* gates = projections + channels + a.value_heads * linear_dim;
  const float beta_logit = gates[head], decay_logit = gates[a.value_heads + head];
  const float mine = projections[part < 3 ? channel : channels + head * linear_dim + place];
  float square = 0, gate = 0;
  if (part < 3) {
    float sum = taps[history_rows] * mine;
    UNROLL
    for (uint j = 0; j < history_rows; ++j) sum += taps[j] * past[j];
    sum = silu(sum);
    vectors[thread_index] = sum;
    square = sum * sum;
    if (part == 2 || head % heads_per_key == 0) {
      UNROLL
      for (uint j = 1; j < history_rows; ++j) history_out[(j - 1) * channels + channel] = past[j];
      history_out[(history_rows - 1) * channels + channel] = mine;
    }
  } else {
    gate = silu(mine) * norm_weight;
  }
  if (simdgroup < 8) square = simd_sum(square);
  // A simdgroup of those that have least to do works out the gates.
  if (simdgroup == 14) square = decay_of(exp_f(rate) * softplus(decay_logit + bias));
  if (simdgroup == 15) square = sigmoid(beta_logit);
  if (lane == 0) squares[simdgroup] = square;
  threadgroup_sync();

  const float4 q = load_float4(vectors + lane * 4), k = load_float4(vectors + linear_dim + lane * 4);
  const float decay = squares[14], beta = squares[15];
  const float q_length = squares[0] + squares[1] + squares[2] + squares[3];
  const float k_length = squares[4] + squares[5] + squares[6] + squares[7];
  const float q_scale = query_scale(q_length), k_scale = unit_scale(k_length);
  const float k_q = simd_sum(dot_four(k, q)) * k_scale * q_scale;
  const float one = row_products(s, k, q, lane), other = simd_shuffle_xor(one, 2);
  const bool has_q = (lane & 2) != 0;
  const float recalled = decay * k_scale * (has_q ? other : one), read = decay * q_scale * (has_q ? one : other);
  const uint row = simdgroup * 8 + lane / 4;
  const float update = beta * (vectors[2 * linear_dim + row] - recalled), out = read + update * k_q;
  const float out_square = simd_sum(out * out) * 0.25f;  // every row is in four lanes
  if (lane % 4 == 0) outputs[row] = out;
  if (lane == 0) output_squares[simdgroup] = out_square;
  UNROLL
  for (uint r = 0; r < 8; ++r) {
    store_float4(state_out + first + r * linear_dim, updated(s[r], decay, simd_shuffle(update, r * 4) * k_scale, k));
  }
  threadgroup_sync();
  if (part == 3) {
    float total = 0;
    UNROLL
    for (uint i = 0; i < 16; ++i) total += output_squares[i];
    y[head * linear_dim + place] = outputs[place] * rsqrt_f(total / float(linear_dim) + a.eps) * gate;
  }
}

FN float4 widen(uint2 pairs) {
  const float2 low = unpack_bf16(pairs.x), high = unpack_bf16(pairs.y);
  float4 v;
  v.x = low.x;
  v.y = low.y;
  v.z = high.x;
  v.w = high.y;
  return v;
}

// Four channels of row `row` of the convolution's input: the history's rows, then the chunk's; zeros after it.
FN float4 conv_input(device const float* history, device const bf16* projections, DeltaArgs a, uint row, uint channel) {
  if (row < history_rows) return load_float4(history + row * delta_channels(a) + channel);
  uint2 pairs;
  pairs.x = pairs.y = 0;
  if (row < a.n + history_rows) pairs = load_uint2(projections + (row - history_rows) * a.stride + channel);
  return widen(pairs);
}

// Four channels of one token, convolved. `rows` is its own input and those before it.
FN float4 convolved(thread const float4* taps, thread const float4* rows) {
  float4 sum;
  sum.x = sum.y = sum.z = sum.w = 0;
  UNROLL
  for (uint j = 0; j < conv_taps; ++j) {
    sum.x += taps[j].x * rows[j].x;
    sum.y += taps[j].y * rows[j].y;
    sum.z += taps[j].z * rows[j].z;
    sum.w += taps[j].w * rows[j].w;
  }
  sum.x = silu(sum.x);
  sum.y = silu(sum.y);
  sum.z = silu(sum.z);
  sum.w = silu(sum.w);
  return sum;
}

// 16 tokens of one head's q, k or v: four a simdgroup, four channels a lane. Rows of projections are aligned to 8 bytes.
KERNEL(128, delta_prepare, IN(0, bf16, projections), IN(1, float, gates), WEIGHTS(2, float, conv),
       WEIGHTS(3, float, a_log), WEIGHTS(4, float, dt_bias), IN(5, float, history), OUT(6, float, history_out),
       OUT(7, bf16, qkv), OUT(8, float, decay), OUT(9, float, beta), ARGS(10, DeltaArgs, a)) {
  THREAD_IDS
  const uint channels = delta_channels(a), channel = group.x * linear_dim + lane * 4;
  float4 taps[conv_taps];
  UNROLL
  for (uint j = 0; j < conv_taps; ++j) taps[j] = load_float4(conv + j * channels + channel);

  wait_for_inputs();
  const uint first = group.y * delta_block + simdgroup * delta_pass;
  float4 rows[delta_pass + history_rows];
  if (first >= history_rows &&
      first + delta_pass <= a.n) {  // nothing to decide, so that all loads are on their way at once
    uint2 pairs[delta_pass + history_rows];
    device const bf16* from = projections + (first - history_rows) * a.stride + channel;
    UNROLL
    for (uint i = 0; i < delta_pass + history_rows; ++i) pairs[i] = load_uint2(from + i * a.stride);
    UNROLL
    for (uint i = 0; i < delta_pass + history_rows; ++i) rows[i] = widen(pairs[i]);
  } else {
    UNROLL
    for (uint i = 0; i < delta_pass + history_rows; ++i) {
      rows[i] = conv_input(history, projections, a, first + i, channel);
    }
  }
  UNROLL
  for (uint i = 0; i < delta_pass; ++i) {
    const float4 v = convolved(taps, rows + i);
    float scale = 1;
    if (group.x < 2 * a.key_heads) {
      const float squares = simd_sum(dot_four(v, v));
      scale = group.x < a.key_heads ? query_scale(squares) : unit_scale(squares);
    }
    if (first + i < a.n) {
      uint2 pairs;
      pairs.x = pack_bf16(v.x * scale, v.y * scale);
      pairs.y = pack_bf16(v.z * scale, v.w * scale);
      store_uint2(qkv + (first + i) * channels + channel, pairs);
    }
  }
  if (group.y == (a.n - 1) / delta_block && simdgroup < history_rows) {
    store_float4(history_out + simdgroup * channels + channel,
                 conv_input(history, projections, a, a.n + simdgroup, channel));
  }
  const uint token = group.y * delta_block + thread_index;
  if (group.x >= 2 * a.key_heads && thread_index < delta_block && token < a.n) {
    const uint head = group.x - 2 * a.key_heads;
    device const float* logits = gates + token * a.gate_stride + head;
    beta[token * a.value_heads + head] = sigmoid(logits[0]);
    decay[token * a.value_heads + head] =
        decay_of(exp_f(a_log[head]) * softplus(logits[a.value_heads] + dt_bias[head]));
  }
}

// 16 tokens of one head: four a simdgroup, four values a lane. z lies in the projections.
KERNEL(128, delta_norm, IN(0, float, o), IN(1, bf16, projections), WEIGHTS(2, float, norm), OUT(3, bf16, y),
       ARGS(4, DeltaArgs, a)) {
  THREAD_IDS
  const uint first = group.y * delta_block + simdgroup * delta_pass, place = group.x * linear_dim + lane * 4;
  const float4 weight = load_float4(norm + lane * 4);

  wait_for_inputs();
  float4 out[delta_pass];
  uint2 z[delta_pass];
  UNROLL
  for (uint i = 0; i < delta_pass; ++i) {
    const uint token = min_u(first + i, a.n - 1);
    out[i] = load_float4(o + token * a.value_heads * linear_dim + place);
    z[i] = load_uint2(projections + token * a.stride + delta_channels(a) + place);
  }
  UNROLL
  for (uint i = 0; i < delta_pass; ++i) {
    const float scale = rsqrt_f(simd_sum(dot_four(out[i], out[i])) / float(linear_dim) + a.eps);
    const float4 gate = widen(z[i]);
    uint2 pairs;
    pairs.x = pack_bf16(out[i].x * scale * weight.x * silu(gate.x), out[i].y * scale * weight.y * silu(gate.y));
    pairs.y = pack_bf16(out[i].z * scale * weight.z * silu(gate.z), out[i].w * scale * weight.w * silu(gate.w));
    if (first + i < a.n) store_uint2(y + (first + i) * a.value_heads * linear_dim + place, pairs);
  }
}

}  // namespace lily::kernels
