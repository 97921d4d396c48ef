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
FN void store_new_token(device const float* keys, HeadPart k_norm, Turn turn, device bf16* pool,
                        device const uint* blocks, AttentionArgs a, uint kv_head, uint position, uint simdgroup,
                        uint lane) {
  device bf16* to = pool + key_place(blocks, a, kv_head, position) + lane * 8;
  if (simdgroup == 6) {
    HeadPart part = head_part(keys + kv_head * head_dim, lane);
    normalize_part(part, k_norm, a.eps);
    rotate_part(part, turn);
    store_uint4(to, pack_part(part));
  } else if (simdgroup == 7) {
    store_uint4(to + value_distance(a), pack_part(head_part(keys + (a.kv_heads + kv_head) * head_dim, lane)));
  }
}

// Each simdgroup prepares one query head and leaves it in shared [step_heads, D]; heads that are not there are zero.
FN void share_queries(threadgroup float* shared, device const float* projections, HeadPart q_norm, Turn turn,
                      AttentionArgs a, uint first_head, uint heads, uint simdgroup, uint lane) {
  const uint head = first_head + min_u(simdgroup, heads - 1);
  const float scale = simdgroup < heads ? 0.0625f : 0.0f;  // 1 / sqrt(head_dim)
  HeadPart part = head_part(projections + head * 2 * head_dim, lane);
  normalize_part(part, q_norm, a.eps);
  rotate_part(part, turn);
  UNROLL
  for (uint i = 0; i < 8; i += 4) {
    float4 v;
    v.x = part.v[i] * scale, v.y = part.v[i + 1] * scale, v.z = part.v[i + 2] * scale, v.w = part.v[i + 3] * scale;
    store_float4(shared + simdgroup * head_dim + lane * 8 + i, v);
  }
}

// Puts what the 8 simdgroups have seen together, two heads at a time, and gives it to y or to partial.
//   shared [2, 8, D], largest and totals [8, step_heads]
FN void finish_heads(thread const Softmax& seen, threadgroup float* shared, threadgroup float* largest,
                     threadgroup float* totals, device const float* projections, device float* y, device float* partial,
                     AttentionArgs a, uint first_head, uint heads, uint split, uint simdgroup, uint lane,
                     uint thread_index) {
  if (lane % 4 == 0) {
    largest[simdgroup * step_heads + lane / 4] = seen.largest;
    totals[simdgroup * step_heads + lane / 4] = seen.total;
  }
  UNROLL
  for (uint h = 0; h < step_heads; h += 2) {
    threadgroup_sync();  // the heads before have been read
    float top[2], total[2];
    UNROLL
    for (uint p = 0; p < 2; ++p) {
      top[p] = lowest;
      total[p] = 0;
      UNROLL
      for (uint s = 0; s < 8; ++s) top[p] = max_f(top[p], largest[s * step_heads + h + p]);
      UNROLL
      for (uint s = 0; s < 8; ++s) {
        total[p] += totals[s * step_heads + h + p] * exp_f(largest[s * step_heads + h + p] - top[p]);
      }
      const float factor = exp_f(largest[simdgroup * step_heads + h + p] - top[p]);
      UNROLL
      for (uint i = 0; i < 8; i += 4) {
        thread const float* sum = seen.sum[h + p] + i;
        float4 v;
        v.x = sum[0] * factor, v.y = sum[1] * factor, v.z = sum[2] * factor, v.w = sum[3] * factor;
        store_float4(shared + (p * 8 + simdgroup) * head_dim + lane * 8 + i, v);
      }
    }
    threadgroup_sync();
    UNROLL
    for (uint p = 0; p < 2; ++p) {
      if (h + p >= heads) continue;
      float sum = 0;
      UNROLL
      for (uint s = 0; s < 8; ++s) sum += shared[(p * 8 + s) * head_dim + thread_index];
      const uint head = first_head + h + p;
      if (a.splits == 1) {
        const float gate = projections[(head * 2 + 1) * head_dim + thread_index];
        y[head * head_dim + thread_index] = sum / total[p] * sigmoid_f(gate);
      } else {
        device float* out = partial + (head * a.splits + split) * (head_dim + 2);
        out[thread_index] = sum;
        if (thread_index == 0) {
          out[head_dim] = top[p];
          out[head_dim + 1] = total[p];
        }
      }
    }
  }
}

// What does not come from the kernel before (norms, angles, the step) is read before its end.
KERNEL(256, attend_step, IN(0, float, projections), WEIGHTS(1, float, q_norm), WEIGHTS(2, float, k_norm),
       WEIGHTS(3, float, rope), IN(4, SequenceStep, step), IN(5, uint, blocks), INOUT(6, bf16, pool), OUT(7, float, y),
       OUT(8, float, partial), ARGS(9, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(float, shared, 2 * 8 * head_dim);
  SHARED(float, largest, 8 * step_heads);
  SHARED(float, totals, 8 * step_heads);
  const uint kv_head = group.y, position = step[0].position, context = position + 1;
  const uint share = (context + a.splits * 32 - 1) / (a.splits * 32) * 32;  // of a split
  const uint first = min_u(group.x * share, context), end = min_u(first + share, context);
  const Turn turn = turn_at(rope, a.rotary_dim, position, lane);
  const HeadPart q_weight = head_part(q_norm, lane), k_weight = head_part(k_norm, lane);
  wait_for_inputs();
  if (first <= position && position < end) {
    store_new_token(projections + 2 * a.heads * head_dim, k_weight, turn, pool, blocks, a, kv_head, position, simdgroup,
                    lane);
  }
  const uint per_kv = a.heads / a.kv_heads;
  for (uint pass = 0; pass < per_kv; pass += step_heads) {
    const uint heads = min_u(step_heads, per_kv - pass), first_head = kv_head * per_kv + pass;
    if (pass > 0) threadgroup_sync();  // shared may still be read from the pass before
    share_queries(shared, projections, q_weight, turn, a, first_head, heads, simdgroup, lane);
    threadgroup_device_sync();  // queries, and the new key
    HeadPart queries[step_heads];
    Softmax seen;
    seen.largest = lowest;
    seen.total = 0;
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      queries[h] = head_part((threadgroup const float*)shared + h * head_dim, lane);
      UNROLL
      for (uint i = 0; i < 8; ++i) seen.sum[h][i] = 0;
    }
    pass_over_keys(seen, queries, pool, blocks, a, kv_head, first, end, simdgroup, lane);
    finish_heads(seen, shared, largest, totals, projections, y, partial, a, first_head, heads, group.x, simdgroup, lane,
                 thread_index);
  }
}

KERNEL(256, attend_merge, IN(0, float, projections), IN(1, float, partial), OUT(2, float, y),
       ARGS(3, AttentionArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  const uint head = group.x, stride = head_dim + 2;
  device const float* parts = partial + head * a.splits * stride;
  // Lanes look at the splits' maxima side by side.
  float top = lowest;
  for (uint s = lane; s < a.splits; s += 32) top = max_f(top, parts[s * stride + head_dim]);
  top = simd_max(top);
  float sum = 0, total = 0;
  for (uint first = 0; first < a.splits; first += 32) {
    const uint mine = first + lane, count = min_u(32, a.splits - first);
    const float factor = mine < a.splits ? exp_f(parts[mine * stride + head_dim] - top) : 0.0f;
    total += simd_sum(mine < a.splits ? parts[mine * stride + head_dim + 1] * factor : 0.0f);
    for (uint s = 0; s < count; ++s) {
      sum += parts[(first + s) * stride + thread_index] * simd_shuffle(factor, s);
    }
  }
  y[head * head_dim + thread_index] = sum / total * sigmoid_f(projections[(head * 2 + 1) * head_dim + thread_index]);
}

}  // namespace lily::kernels
