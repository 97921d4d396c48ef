// The gated delta rule over a chunk of tokens: see delta.h for the rule.
#pragma once

#include "kernels/delta.h"

namespace lily::kernels {

constexpr uint scan_rows = 32;     // of the state, of a threadgroup of delta_scan
constexpr uint scan_factors = 40;  // of four tokens: see delta_stage

// What a lane of delta_scan has of its simdgroup's four tokens: four columns of k and q, one value, and the gates.
struct DeltaInputs {
  uint2 k[delta_pass], q[delta_pass];
  float v[delta_pass], decay[delta_pass], beta[delta_pass];
};

// Tokens after the chunk's last one leave the state as it is.
FN void delta_fetch(thread DeltaInputs& in, device const bf16* qkv, device const float* decay, device const float* beta,
                    DeltaArgs a, uint token, uint head, uint value, uint lane) {
  const uint channels = delta_channels(a), key_channel = head / (a.value_heads / a.key_heads) * linear_dim + lane * 4;
  UNROLL
  for (uint i = 0; i < delta_pass; ++i) {
    in.k[i].x = in.k[i].y = in.q[i].x = in.q[i].y = 0;
    in.v[i] = in.beta[i] = 0;
    in.decay[i] = 1;
    if (token + i < a.n) {
      device const bf16* row = qkv + (token + i) * channels;
      in.q[i] = load_uint2(row + key_channel);
      in.k[i] = load_uint2(row + a.key_heads * linear_dim + key_channel);
      in.v[i] = to_float(row[(2 * a.key_heads + head) * linear_dim + value]);
      in.decay[i] = decay[(token + i) * a.value_heads + head];
      in.beta[i] = beta[(token + i) * a.value_heads + head];
    }
  }
}

// Four tokens unrolled. With S the state before them, d(j, i) the product of the decays of tokens j + 1 to i, and
// D(i) = d(-1, i):
//   u_i = beta_i v_i - beta_i D(i) (S k_i) - sum over j < i of beta_i d(j, i) (k_j . k_i) u_j
//   o_i = D(i) (S q_i) + sum over j <= i of d(j, i) (k_j . q_i) u_j
//   S  <- D(3) S + sum over j of d(j, 3) u_j k_j^T
// so only the products with S wait for the tokens before. The factors of the rest, rows of four in threadgroup memory:
// 0: beta_i D(i); 1 to 3: of u_j in u_i (j < i); 4 to 7: of u_j in o_(row - 4); 8: D(i); 9: d(j, 3).
FN void delta_stage(thread const DeltaInputs& in, threadgroup uint* keys, threadgroup uint* queries,
                    threadgroup float* values, threadgroup float* factors, uint lane) {
  float dots[16];
  float4 k[delta_pass];
  UNROLL
  for (uint i = 0; i < delta_pass; ++i) {
    store_uint2(keys + i * (linear_dim / 2) + lane * 2, in.k[i]);
    store_uint2(queries + i * (linear_dim / 2) + lane * 2, in.q[i]);
    values[lane * delta_pass + i] = in.beta[i] * in.v[i];
    k[i] = widen(in.k[i]);
    const float4 q = widen(in.q[i]);
    UNROLL
    for (uint j = 0; j < delta_pass; ++j) {
      if (j < i) dots[i * (i - 1) / 2 + j] = dot_four(k[j], k[i]);
      if (j <= i) dots[6 + i * (i + 1) / 2 + j] = dot_four(k[j], q);
    }
  }
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

FN void widen_eight(uint4 pairs, thread float* to) {
  const float2 a = unpack_bf16(pairs.x), b = unpack_bf16(pairs.y), c = unpack_bf16(pairs.z), d = unpack_bf16(pairs.w);
  to[0] = a.x;
  to[1] = a.y;
  to[2] = b.x;
  to[3] = b.y;
  to[4] = c.x;
  to[5] = c.y;
  to[6] = d.x;
  to[7] = d.y;
}

// Takes four tokens into a lane's part of the state: columns [8 p, 8 p + 8) and [64 + 8 p, 64 + 8 p + 8), p = lane / 4, of two
// rows. Of the two rows' sums a lane completes those of row lane / 16. Returns the output there of token lane / 4 % 4.
FN float delta_tokens(thread float* s, threadgroup const uint* keys, threadgroup const uint* queries,
                      threadgroup const float* values, threadgroup const float* factors, uint lane) {
  float k[delta_pass * 16], by_key[2 * delta_pass], by_query[2 * delta_pass];
  UNROLL
  for (uint i = 0; i < 2 * delta_pass; ++i) by_key[i] = by_query[i] = 0;
  UNROLL
  for (uint c = 0; c < 2; ++c) {
    UNROLL
    for (uint t = 0; t < delta_pass; ++t) {
      const uint place = t * (linear_dim / 2) + c * 32 + lane / 4 * 4;
      float q[8];
      widen_eight(load_uint4(keys + place), k + t * 16 + c * 8);
      widen_eight(load_uint4(queries + place), q);
      UNROLL
      for (uint e = 0; e < 8; ++e) {
        by_key[t] += s[c * 8 + e] * k[t * 16 + c * 8 + e];
        by_key[delta_pass + t] += s[16 + c * 8 + e] * k[t * 16 + c * 8 + e];
        by_query[t] += s[c * 8 + e] * q[e];
        by_query[delta_pass + t] += s[16 + c * 8 + e] * q[e];
      }
    }
  }
  const bool second = lane >= 16, late = (lane & 8) != 0, odd = (lane & 4) != 0;
  UNROLL
  for (uint t = 0; t < delta_pass; ++t) {
    const float k_given = second ? by_key[t] : by_key[delta_pass + t];
    const float q_given = second ? by_query[t] : by_query[delta_pass + t];
    by_key[t] = (second ? by_key[delta_pass + t] : by_key[t]) + simd_shuffle_xor(k_given, 16);
    by_query[t] = (second ? by_query[delta_pass + t] : by_query[t]) + simd_shuffle_xor(q_given, 16);
  }
  UNROLL
  for (uint t = 0; t < delta_pass; ++t) by_key[t] += simd_shuffle_xor(by_key[t], 8);
  UNROLL
  for (uint t = 0; t < delta_pass; ++t) by_key[t] += simd_shuffle_xor(by_key[t], 4);
  UNROLL
  for (uint t = 0; t < 2; ++t) {
    const float given = late ? by_query[t] : by_query[2 + t];
    by_query[t] = (late ? by_query[2 + t] : by_query[t]) + simd_shuffle_xor(given, 8);
  }
  const float read = (odd ? by_query[1] : by_query[0]) + simd_shuffle_xor(odd ? by_query[0] : by_query[1], 4);

  const uint token = lane / 4 % 4;
  const float4 v = load_float4(values + ((lane % 4) * 2 + lane / 16) * delta_pass);
  const float4 own = load_float4(factors), f1 = load_float4(factors + 4), f2 = load_float4(factors + 8);
  const float4 f3 = load_float4(factors + 12), to_out = load_float4(factors + 16 + token * 4);
  const float4 late_decay = load_float4(factors + 36);
  float4 u;
  u.x = v.x - own.x * by_key[0];
  u.y = v.y - own.y * by_key[1] - f1.x * u.x;
  u.z = v.z - own.z * by_key[2] - f2.x * u.x - f2.y * u.y;
  u.w = v.w - own.w * by_key[3] - f3.x * u.x - f3.y * u.y - f3.z * u.z;
  const float out = factors[32 + token] * read + dot_four(to_out, u);

  const float decay = factors[35];
  float w[delta_pass];
  w[0] = late_decay.x * u.x;
  w[1] = late_decay.y * u.y;
  w[2] = late_decay.z * u.z;
  w[3] = u.w;
  UNROLL
  for (uint e = 0; e < 32; ++e) s[e] *= decay;
  UNROLL
  for (uint t = 0; t < delta_pass; ++t) {
    const float other = simd_shuffle_xor(w[t], 16), w0 = second ? other : w[t], w1 = second ? w[t] : other;
    UNROLL
    for (uint e = 0; e < 16; ++e) {
      s[e] += w0 * k[t * 16 + e];
      s[16 + e] += w1 * k[t * 16 + e];
    }
  }
  return out;
}

// A chunk's recurrence: 32 rows of one value head's state stay in the registers of a threadgroup, and k, q, v and the gates of
// 16 tokens at a time come through threadgroup memory, four tokens by each simdgroup, fetched while the 16 before are taken.
KERNEL(128, delta_scan, IN(0, bf16, qkv), IN(1, float, decay), IN(2, float, beta), IN(3, float, state),
       OUT(4, float, state_out), OUT(5, float, o), ARGS(6, DeltaArgs, a)) {
  THREAD_IDS
  constexpr uint passes = delta_block / delta_pass, pass_pairs = delta_pass * linear_dim / 2;
  constexpr uint pass_values = delta_pass * scan_rows;
  SHARED(uint, keys, 2 * passes * pass_pairs);  // [2 stages, tokens, K / 2] pairs of bf16
  SHARED(uint, queries, 2 * passes * pass_pairs);
  SHARED(float, values, 2 * passes * pass_values);  // [2, passes, rows, 4 tokens], times beta
  SHARED(float, factors, 2 * passes * scan_factors);
  for (uint i = thread_index; i < 2 * passes * scan_factors; i += 128) factors[i] = 0;
  const uint head = group.y, row = simdgroup * 8 + lane % 4 * 2;
  const uint first = (head * linear_dim + group.x * scan_rows + row) * linear_dim + lane / 4 * 8;

  wait_for_inputs();
  float s[32];
  UNROLL
  for (uint i = 0; i < 8; ++i) {
    const float4 part = load_float4(state + first + i / 4 * linear_dim + i / 2 % 2 * 64 + i % 2 * 4);
    s[i * 4] = part.x;
    s[i * 4 + 1] = part.y;
    s[i * 4 + 2] = part.z;
    s[i * 4 + 3] = part.w;
  }
  DeltaInputs in;
  const uint value = group.x * scan_rows + lane;
  delta_fetch(in, qkv, decay, beta, a, simdgroup * delta_pass, head, value, lane);
  threadgroup_sync();
  delta_stage(in, keys + simdgroup * pass_pairs, queries + simdgroup * pass_pairs, values + simdgroup * pass_values,
              factors + simdgroup * scan_factors, lane);
  threadgroup_sync();
  for (uint start = 0; start < a.n; start += delta_block) {
    const uint here = start / delta_block % 2 * passes, next = passes - here + simdgroup;
    const bool more = start + delta_block < a.n;
    if (more) {
      delta_fetch(in, qkv, decay, beta, a, start + delta_block + simdgroup * delta_pass, head, value, lane);
    }
    const uint end = min_u(passes, (a.n - start + delta_pass - 1) / delta_pass);
    for (uint pass = here; pass < here + end; ++pass) {
      const float out =
          delta_tokens(s, keys + pass * pass_pairs, queries + pass * pass_pairs,
                       values + pass * pass_values + simdgroup * 8 * delta_pass, factors + pass * scan_factors, lane);
      const uint token = start + (pass - here) * delta_pass + lane / 4 % 4;
      if (token < a.n) {
        o[(token * a.value_heads + head) * linear_dim + group.x * scan_rows + row + lane / 16] = out;
      }
    }
    if (more) {
      delta_stage(in, keys + next * pass_pairs, queries + next * pass_pairs, values + next * pass_values,
                  factors + next * scan_factors, lane);
    }
    threadgroup_sync();
  }
  UNROLL
  for (uint i = 0; i < 8; ++i) {
    float4 part;
    part.x = s[i * 4];
    part.y = s[i * 4 + 1];
    part.z = s[i * 4 + 2];
    part.w = s[i * 4 + 3];
    store_float4(state_out + first + i / 4 * linear_dim + i / 2 % 2 * 64 + i % 2 * 4, part);
  }
}

}  // namespace lily::kernels
