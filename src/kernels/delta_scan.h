// The gated delta rule over a chunk of tokens: see delta.h for the rule.
#pragma once

#include "kernels/delta.h"

namespace lily::kernels {

constexpr uint scan_rows = 32;     // of the state, of a threadgroup of delta_scan
constexpr uint scan_factors = 40;  // of four tokens: see delta_stage

// What a lane of delta_scan has of its simdgroup's four tokens: four columns of k and q, one value, and the gates.
struct DeltaInputs {
  uint2 k[delta_pass], q[delta_pass];
  bf16 v[delta_pass];
  float decay[delta_pass], beta[delta_pass];
};

// Neither a branch nor a use of what is loaded, so that nothing waits. After the chunk's last token comes that one again.
FN void delta_fetch(thread DeltaInputs& in, device const bf16* qkv, device const float* decay, device const float* beta,
                    DeltaArgs a, uint token, uint head, uint value, uint lane) {
  const uint channels = delta_channels(a), key_channel = head / (a.value_heads / a.key_heads) * linear_dim + lane * 4;
  UNROLL
  for (uint i = 0; i < delta_pass; ++i) {
    const uint t = min_u(token + i, a.n - 1);
    device const bf16* row = qkv + t * channels;
    in.q[i] = load_uint2(row + key_channel);
    in.k[i] = load_uint2(row + a.key_heads * linear_dim + key_channel);
    in.v[i] = row[(2 * a.key_heads + head) * linear_dim + value];
    in.decay[i] = decay[t * a.value_heads + head];
    in.beta[i] = beta[t * a.value_heads + head];
  }
}

// Four tokens unrolled. With S the state before them, d(j, i) the product of the decays of tokens j + 1 to i, and
// D(i) = d(-1, i):
//   u_i = beta_i v_i - beta_i D(i) (S k_i) - sum over j < i of beta_i d(j, i) (k_j . k_i) u_j
//   o_i = D(i) (S q_i) + sum over j <= i of d(j, i) (k_j . q_i) u_j
//   S  <- D(3) S + sum over j of d(j, 3) u_j k_j^T
// so only the products with S wait for the tokens before. The factors of the rest, rows of four in threadgroup memory:
// 0: beta_i D(i); 1 to 3: of u_j in u_i (j < i); 4 to 7: of u_j in o_(row - 4); 8: D(i); 9: d(j, 3).
FN void delta_stage(thread DeltaInputs& in, uint count, threadgroup float* keys, threadgroup float* queries,
                    threadgroup float* values, threadgroup float* factors, uint lane) {
  float dots[16];
  float4 k[delta_pass];
  UNROLL
  for (uint i = 0; i < delta_pass; ++i) {
    if (i >= count) {  // after the chunk's last token: nothing is forgotten, nothing written
      in.decay[i] = 1;
      in.beta[i] = 0;
    }
    k[i] = widen(in.k[i]);
    const float4 q = widen(in.q[i]);
    store_float4(keys + i * linear_dim + lane * 4, k[i]);
    store_float4(queries + i * linear_dim + lane * 4, q);
    UNROLL
    for (uint j = 0; j < delta_pass; ++j) {
      if (j < i) dots[i * (i - 1) / 2 + j] = dot_four(k[j], k[i]);
      if (j <= i) dots[6 + i * (i + 1) / 2 + j] = dot_four(k[j], q);
    }
  }
  float4 v;
  v.x = in.beta[0] * to_float(in.v[0]);
  v.y = in.beta[1] * to_float(in.v[1]);
  v.z = in.beta[2] * to_float(in.v[2]);
  v.w = in.beta[3] * to_float(in.v[3]);
  store_float4(values + lane * delta_pass, v);
  const float sum = sum_sixteen(dots, lane);
  // This lane's is dots[lane / 2], of tokens j and i.
  const bool of_keys = lane < 12;
  const uint index = lane / 2 - (of_keys ? 0 : 6), row = index >= 6 ? 3 : index >= 3 ? 2 : index >= 1 ? 1 : 0;
  const uint i = row + (of_keys ? 1 : 0), j = index - row * (row + 1) / 2;
  const float d1 = in.decay[1], d2 = in.decay[2], d3 = in.decay[3];
  float factor = j < 1 && i >= 1 ? d1 : 1.0f;
  factor *= j < 2 && i >= 2 ? d2 : 1.0f;
  factor *= j < 3 && i >= 3 ? d3 : 1.0f;
  if (of_keys) factor *= i == 1 ? in.beta[1] : i == 2 ? in.beta[2] : in.beta[3];
  if (lane % 2 == 0) factors[(of_keys ? 0 : 16) + i * 4 + j] = factor * sum;
  if (lane == 1) {
    float4 whole, late;
    whole.x = in.decay[0];
    whole.y = whole.x * d1;
    whole.z = whole.y * d2;
    whole.w = whole.z * d3;
    late.w = 1;
    late.z = d3;
    late.y = d3 * d2;
    late.x = late.y * d1;
    store_float4(factors + 32, whole);
    store_float4(factors + 36, late);
    whole.x *= in.beta[0];
    whole.y *= in.beta[1];
    whole.z *= in.beta[2];
    whole.w *= in.beta[3];
    store_float4(factors, whole);
  }
}

// A lane's columns of four tokens' keys or queries: [4 p, 4 p + 4) of each 32, p = lane / 4.
FN void load_columns(thread float4* to, threadgroup const float* from, uint lane) {
  UNROLL
  for (uint i = 0; i < delta_pass * 4; ++i) {
    to[i] = load_float4(from + i / 4 * linear_dim + i % 4 * 32 + lane / 4 * 4);
  }
}

// The lane's part of the products of two rows of the state with four vectors.
FN void multiply_rows(thread const float4* s, thread const float4* x, thread float* sums) {
  UNROLL
  for (uint i = 0; i < 2 * delta_pass; ++i) sums[i] = 0;
  UNROLL
  for (uint c = 0; c < 4; ++c) {
    UNROLL
    for (uint i = 0; i < 2 * delta_pass; ++i) {
      const float4 row = s[i / delta_pass * 4 + c], vector = x[i % delta_pass * 4 + c];
      sums[i] += row.x * vector.x;
      sums[i] += row.y * vector.y;
      sums[i] += row.z * vector.z;
      sums[i] += row.w * vector.w;
    }
  }
}

// Takes four tokens into a lane's part of the state, 16 columns of two rows. Of the two rows' sums a lane completes those of row
// lane / 16. Returns the output there of token lane / 4 % 4.
FN float delta_tokens(thread float4* s, threadgroup const float* keys, threadgroup const float* queries,
                      threadgroup const float* values, threadgroup const float* factors, uint lane) {
  float4 k[delta_pass * 4], q[delta_pass * 4];
  float by_key[2 * delta_pass], by_query[2 * delta_pass];
  load_columns(k, keys, lane);
  multiply_rows(s, k, by_key);
  fold_sums<delta_pass, 16>(by_key, lane);
  UNROLL
  for (uint t = 0; t < delta_pass; ++t) by_key[t] += simd_shuffle_xor(by_key[t], 8);
  UNROLL
  for (uint t = 0; t < delta_pass; ++t) by_key[t] += simd_shuffle_xor(by_key[t], 4);
  load_columns(q, queries, lane);
  multiply_rows(s, q, by_query);  // while the sums above are on their way

  const float4 v = load_float4(values + (lane % 4 * 2 + lane / 16) * delta_pass);
  const float4 own = load_float4(factors), f1 = load_float4(factors + 4), f2 = load_float4(factors + 8);
  const float4 f3 = load_float4(factors + 12), late_decay = load_float4(factors + 36);
  float4 u;
  u.x = v.x - own.x * by_key[0];
  u.y = v.y - own.y * by_key[1] - f1.x * u.x;
  u.z = v.z - own.z * by_key[2] - f2.x * u.x - f2.y * u.y;
  u.w = v.w - own.w * by_key[3] - f3.x * u.x - f3.y * u.y - f3.z * u.z;
  float w[delta_pass];
  w[0] = late_decay.x * u.x;
  w[1] = late_decay.y * u.y;
  w[2] = late_decay.z * u.z;
  w[3] = u.w;
  const float decay = factors[35];
  const bool second = lane >= 16;
  UNROLL
  for (uint t = 0; t < delta_pass; ++t) {
    const float other = simd_shuffle_xor(w[t], 16), w0 = second ? other : w[t], w1 = second ? w[t] : other;
    UNROLL
    for (uint c = 0; c < 4; ++c) {
      s[c] = updated(s[c], t == 0 ? decay : 1.0f, w0, k[t * 4 + c]);
      s[4 + c] = updated(s[4 + c], t == 0 ? decay : 1.0f, w1, k[t * 4 + c]);
    }
  }
  fold_sums<delta_pass, 16>(by_query, lane);
  fold_sums<2, 8>(by_query, lane);
  fold_sums<1, 4>(by_query, lane);
  const uint token = lane / 4 % 4;
  return factors[32 + token] * by_query[0] + dot_four(load_float4(factors + 16 + token * 4), u);
}

// A chunk's recurrence: 32 rows of one value head's state stay in the registers of a threadgroup, and k, q, v and the gates of
// 16 tokens at a time come through threadgroup memory, four tokens by each simdgroup, fetched while the 16 before are taken.
KERNEL_LARGE(128, delta_scan, IN(0, bf16, qkv), IN(1, float, decay), IN(2, float, beta), IN(3, float, state),
             OUT(4, float, state_out), OUT(5, float, o), ARGS(6, DeltaArgs, a)) {
  THREAD_IDS
  constexpr uint passes = delta_block / delta_pass, pass_vectors = delta_pass * linear_dim;
  constexpr uint pass_values = delta_pass * scan_rows;
  SHARED(float, keys, passes* pass_vectors);  // [passes, 4 tokens, K]
  SHARED(float, queries, passes* pass_vectors);
  SHARED(float, values, passes* pass_values);  // [passes, rows, 4 tokens], times beta
  SHARED(float, factors, passes* scan_factors);
  for (uint i = thread_index; i < passes * scan_factors; i += 128) factors[i] = 0;
  threadgroup_sync();
  const uint head = group.y, row = simdgroup * 8 + lane % 4 * 2, value = group.x * scan_rows + lane;
  const uint first = (head * linear_dim + group.x * scan_rows + row) * linear_dim + lane / 4 * 4;

  wait_for_inputs();
  DeltaInputs in;
  delta_fetch(in, qkv, decay, beta, a, simdgroup * delta_pass, head, value, lane);
  float4 s[8];
  UNROLL
  for (uint i = 0; i < 8; ++i) s[i] = load_float4(state + first + i / 4 * linear_dim + i % 4 * 32);
  for (uint start = 0; start < a.n; start += delta_block) {
    const uint mine = start + simdgroup * delta_pass, left = a.n - start;
    delta_stage(in, a.n - min_u(mine, a.n), keys + simdgroup * pass_vectors, queries + simdgroup * pass_vectors,
                values + simdgroup * pass_values, factors + simdgroup * scan_factors, lane);
    threadgroup_sync();
    delta_fetch(in, qkv, decay, beta, a, mine + delta_block, head, value, lane);
    for (uint pass = 0; pass < passes && pass * delta_pass < left; ++pass) {
      const float out =
          delta_tokens(s, keys + pass * pass_vectors, queries + pass * pass_vectors,
                       values + pass * pass_values + simdgroup * 8 * delta_pass, factors + pass * scan_factors, lane);
      const uint token = pass * delta_pass + lane / 4 % 4;
      if (token < left) {
        o[((start + token) * a.value_heads + head) * linear_dim + group.x * scan_rows + row + lane / 16] = out;
      }
    }
    threadgroup_sync();
  }
  UNROLL
  for (uint i = 0; i < 8; ++i) store_float4(state_out + first + i / 4 * linear_dim + i % 4 * 32, s[i]);
}

}  // namespace lily::kernels
