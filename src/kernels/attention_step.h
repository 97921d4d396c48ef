// Decode attention: one token against its context. The heads of a KV head sit in one threadgroup, so that each key and value is
// read once; a long context is split among threadgroups, whose partial softmaxes are merged.
#pragma once

#include "kernels/attention.h"

namespace lily::kernels {

constexpr uint step_heads = 8;  // query heads that a pass over the context serves
constexpr uint step_keys = 4;   // that a simdgroup loads at once
constexpr float lowest = -3.0e38f;

// What a simdgroup has seen: for each head the largest score, the sum of exp(score - largest), and that sum over values.
struct Softmax {
  float sum[step_heads][8];  // dimensions 8 * lane and on
  float largest, total;      // of head lane / 4
};

// Sums eight values over all lanes at once: lane l gets the sum of value l / 4. Each exchange halves what is left to add.
FN float sum_eight(thread float* v, uint lane) {
  UNROLL
  for (uint i = 0; i < 4; ++i) {
    const float give = lane & 16 ? v[i] : v[i + 4], keep = lane & 16 ? v[i + 4] : v[i];
    v[i] = keep + simd_shuffle_xor(give, 16);
  }
  UNROLL
  for (uint i = 0; i < 2; ++i) {
    const float give = lane & 8 ? v[i] : v[i + 2], keep = lane & 8 ? v[i + 2] : v[i];
    v[i] = keep + simd_shuffle_xor(give, 8);
  }
  const float give = lane & 4 ? v[0] : v[1], keep = lane & 4 ? v[1] : v[0];
  float sum = keep + simd_shuffle_xor(give, 4);
  sum += simd_shuffle_xor(sum, 2);
  return sum + simd_shuffle_xor(sum, 1);
}

// `count` keys with their values; the last ones of step_keys may be absent.
FN void add_keys(thread Softmax& seen, thread const HeadPart* queries, thread const uint4* keys,
                 thread const uint4* values, uint count, uint lane) {
  float score[step_keys], top = seen.largest;
  UNROLL
  for (uint k = 0; k < step_keys; ++k) {
    float products[step_heads];
    const float2 a = unpack_bf16(keys[k].x), b = unpack_bf16(keys[k].y), c = unpack_bf16(keys[k].z),
                 d = unpack_bf16(keys[k].w);
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      thread const float* q = queries[h].v;
      products[h] =
          q[0] * a.x + q[1] * a.y + q[2] * b.x + q[3] * b.y + q[4] * c.x + q[5] * c.y + q[6] * d.x + q[7] * d.y;
    }
    score[k] = sum_eight(products, lane);
    if (k < count) top = max_f(top, score[k]);
  }
  const float shrink = exp_f(seen.largest - top);
  seen.largest = top;
  seen.total *= shrink;
  UNROLL
  for (uint h = 0; h < step_heads; ++h) {
    const float factor = simd_shuffle(shrink, h * 4);
    UNROLL
    for (uint i = 0; i < 8; ++i) seen.sum[h][i] *= factor;
  }
  UNROLL
  for (uint k = 0; k < step_keys; ++k) {
    const float weight = k < count ? exp_f(score[k] - top) : 0;
    seen.total += weight;
    const float2 a = unpack_bf16(values[k].x), b = unpack_bf16(values[k].y), c = unpack_bf16(values[k].z),
                 d = unpack_bf16(values[k].w);
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      const float w = simd_shuffle(weight, h * 4);
      seen.sum[h][0] += w * a.x, seen.sum[h][1] += w * a.y, seen.sum[h][2] += w * b.x, seen.sum[h][3] += w * b.y;
      seen.sum[h][4] += w * c.x, seen.sum[h][5] += w * c.y, seen.sum[h][6] += w * d.x, seen.sum[h][7] += w * d.y;
    }
  }
}

// Tokens [first, end) of the context for one threadgroup, dealt to its simdgroups step_keys at a time.
FN void pass_over_keys(thread Softmax& seen, thread const HeadPart* queries, device bf16* pool,
                       device const uint* blocks, AttentionArgs a, uint kv_head, uint first, uint end, uint simdgroup,
                       uint lane) {
  const ulong distance = value_distance(a);
  for (uint token = first + simdgroup * step_keys; token < end; token += 8 * step_keys) {
    const uint count = min_u(step_keys, end - token);
    uint4 keys[step_keys], values[step_keys];
    UNROLL
    for (uint k = 0; k < step_keys; ++k) {
      device const bf16* key = pool + key_place(blocks, a, kv_head, min_u(token + k, end - 1)) + lane * 8;
      keys[k] = load_uint4(key);
      values[k] = load_uint4(key + distance);
    }
    add_keys(seen, queries, keys, values, count, lane);
  }
}

// The threadgroup that has the token's own place writes its key and value; the next barrier shows them to the others.
FN void store_new_token(device const float* keys, device const float* k_norm, device const float* rope,
                        device bf16* pool, device const uint* blocks, AttentionArgs a, uint kv_head, uint position,
                        uint simdgroup, uint lane) {
  device bf16* to = pool + key_place(blocks, a, kv_head, position) + lane * 8;
  if (simdgroup == 0) {
    HeadPart part = head_part(keys + kv_head * head_dim, lane);
    normalize_part(part, k_norm, a.eps, lane);
    rotate_part(part, rope, a.rotary_dim, position, lane);
    store_uint4(to, pack_part(part));
  } else if (simdgroup == 1) {
    store_uint4(to + value_distance(a), pack_part(head_part(keys + (a.kv_heads + kv_head) * head_dim, lane)));
  }
}

// Puts what the 8 simdgroups have seen together, head by head, and gives it to y or to partial.
FN void finish_heads(thread const Softmax& seen, threadgroup float* sums, threadgroup float* largest,
                     threadgroup float* totals, device const float* projections, device float* y, device float* partial,
                     AttentionArgs a, uint first_head, uint heads, uint split, uint simdgroup, uint lane,
                     uint thread_index) {
  if (lane % 4 == 0) {
    largest[simdgroup * step_heads + lane / 4] = seen.largest;
    totals[simdgroup * step_heads + lane / 4] = seen.total;
  }
  for (uint h = 0; h < heads; ++h) {
    threadgroup_sync();  // the head before has been read
    float top = lowest, total = 0;
    for (uint s = 0; s < 8; ++s) top = max_f(top, largest[s * step_heads + h]);
    for (uint s = 0; s < 8; ++s) total += totals[s * step_heads + h] * exp_f(largest[s * step_heads + h] - top);
    const float factor = exp_f(largest[simdgroup * step_heads + h] - top);
    UNROLL
    for (uint i = 0; i < 8; ++i) {
      float value = 0;
      UNROLL
      for (uint other = 0; other < step_heads; ++other) {  // registers are indexed by constants only
        if (other == h) value = seen.sum[other][i];
      }
      sums[simdgroup * head_dim + lane * 8 + i] = value * factor;
    }
    threadgroup_sync();
    float sum = 0;
    for (uint s = 0; s < 8; ++s) sum += sums[s * head_dim + thread_index];
    const uint head = first_head + h;
    if (a.splits == 1) {
      const float gate = projections[(head * 2 + 1) * head_dim + thread_index];
      y[head * head_dim + thread_index] = sum / total * sigmoid_f(gate);
    } else {
      device float* out = partial + (head * a.splits + split) * (head_dim + 2);
      out[thread_index] = sum;
      if (thread_index == 0) {
        out[head_dim] = top;
        out[head_dim + 1] = total;
      }
    }
  }
}

KERNEL(256, attend_step, IN(0, float, projections), WEIGHTS(1, float, q_norm), WEIGHTS(2, float, k_norm),
       WEIGHTS(3, float, rope), IN(4, SequenceStep, step), IN(5, uint, blocks), INOUT(6, bf16, pool), OUT(7, float, y),
       OUT(8, float, partial), ARGS(9, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(float, sums, 8 * head_dim);
  SHARED(float, largest, 8 * step_heads);
  SHARED(float, totals, 8 * step_heads);
  wait_for_inputs();
  const uint kv_head = group.y, position = step[0].position, context = position + 1;
  const uint share = (context + a.splits * 32 - 1) / (a.splits * 32) * 32;  // of a split
  const uint first = min_u(group.x * share, context), end = min_u(first + share, context);
  if (first <= position && position < end) {
    store_new_token(projections + 2 * a.heads * head_dim, k_norm, rope, pool, blocks, a, kv_head, position, simdgroup,
                    lane);
  }
  threadgroup_device_sync();  // the new key is read below
  const uint per_kv = a.heads / a.kv_heads;
  for (uint pass = 0; pass < per_kv; pass += step_heads) {
    const uint heads = min_u(step_heads, per_kv - pass), first_head = kv_head * per_kv + pass;
    HeadPart queries[step_heads];
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      const uint head = first_head + min_u(h, heads - 1);
      queries[h] = head_part(projections + head * 2 * head_dim, lane);
      normalize_part(queries[h], q_norm, a.eps, lane);
      rotate_part(queries[h], rope, a.rotary_dim, position, lane);
      UNROLL
      for (uint i = 0; i < 8; ++i) queries[h].v[i] *= 0.0625f;  // 1 / sqrt(head_dim)
    }
    Softmax seen;
    seen.largest = lowest;
    seen.total = 0;
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      UNROLL
      for (uint i = 0; i < 8; ++i) seen.sum[h][i] = 0;
    }
    pass_over_keys(seen, queries, pool, blocks, a, kv_head, first, end, simdgroup, lane);
    threadgroup_sync();  // sums may still be read from the pass before
    finish_heads(seen, sums, largest, totals, projections, y, partial, a, first_head, heads, group.x, simdgroup, lane,
                 thread_index);
  }
}

KERNEL(256, attend_merge, IN(0, float, projections), IN(1, float, partial), OUT(2, float, y),
       ARGS(3, AttentionArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  const uint head = group.x, stride = head_dim + 2;
  device const float* parts = partial + head * a.splits * stride;
  float top = lowest, sum = 0, total = 0;
  for (uint s = 0; s < a.splits; ++s) top = max_f(top, parts[s * stride + head_dim]);
  for (uint s = 0; s < a.splits; ++s) {
    const float factor = exp_f(parts[s * stride + head_dim] - top);
    total += parts[s * stride + head_dim + 1] * factor;
    sum += parts[s * stride + thread_index] * factor;
  }
  y[head * head_dim + thread_index] = sum / total * sigmoid_f(projections[(head * 2 + 1) * head_dim + thread_index]);
}

}  // namespace lily::kernels
