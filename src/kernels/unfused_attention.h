// Decode attention in plain forms, for `lily bench --ablate`: with queries in memory, a head at a time, and with lanes that
// stride over keys. They dot by lanes, not by the matrix unit; partial results are those of attend_step.
#pragma once

#include "kernels/activations.h"
#include "kernels/attention_step.h"

namespace lily::kernels {

constexpr uint plain_keys = 4;  // that a simdgroup loads at once

// What a simdgroup has seen: for each head the largest score, the sum of exp(score - largest), and that sum over values.
struct PlainSoftmax {
  float sum[step_heads][8];  // dimensions 8 * lane and on
  float largest, total;      // of head lane / 4
};

// Sums eight values over all lanes at once: lane l gets the sum of value l / 4. Each exchange halves what is left to add.
FN float plain_sum_eight(thread float* v, uint lane) {
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

// `count` keys with their values; the last ones of plain_keys may be absent.
FN void plain_add_keys(thread PlainSoftmax& seen, thread const HeadPart* queries, thread const uint4* keys,
                       thread const uint4* values, uint count, uint lane) {
  float score[plain_keys], top = seen.largest;
  UNROLL
  for (uint k = 0; k < plain_keys; ++k) {
    float products[step_heads];
    const float2 a = unpack_bf16(keys[k].x), b = unpack_bf16(keys[k].y), c = unpack_bf16(keys[k].z),
                 d = unpack_bf16(keys[k].w);
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      thread const float* q = queries[h].v;
      products[h] =
          q[0] * a.x + q[1] * a.y + q[2] * b.x + q[3] * b.y + q[4] * c.x + q[5] * c.y + q[6] * d.x + q[7] * d.y;
    }
    score[k] = plain_sum_eight(products, lane);
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
  for (uint k = 0; k < plain_keys; ++k) {
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

// Tokens [first, end) of the context for one threadgroup, dealt to its simdgroups plain_keys at a time.
FN void plain_pass_over_keys(thread PlainSoftmax& seen, thread const HeadPart* queries, device bf16* pool,
                             device const uint* blocks, AttentionArgs a, uint kv_head, uint first, uint end,
                             uint simdgroup, uint lane) {
  const ulong distance = value_distance(a);
  for (uint token = first + simdgroup * plain_keys; token < end; token += 8 * plain_keys) {
    const uint count = min_u(plain_keys, end - token);
    uint4 keys[plain_keys], values[plain_keys];
    UNROLL
    for (uint k = 0; k < plain_keys; ++k) {
      device const bf16* key = pool + key_place(blocks, a, kv_head, min_u(token + k, end - 1)) + lane * 8;
      keys[k] = load_uint4(key);
      values[k] = load_uint4(key + distance);
    }
    plain_add_keys(seen, queries, keys, values, count, lane);
  }
}

// The threadgroup that has the token's own place writes its key and value; the next barrier shows them to the others.
FN void plain_store_new_token(device const float* keys, device const float* k_norm, device const float* rope,
                              device bf16* pool, device const uint* blocks, AttentionArgs a, uint kv_head,
                              uint position, uint simdgroup, uint lane) {
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
FN void plain_finish_heads(thread const PlainSoftmax& seen, threadgroup float* sums, threadgroup float* largest,
                           threadgroup float* totals, device const float* projections, device float* y,
                           device float* partial, AttentionArgs a, uint first_head, uint heads, uint split,
                           uint simdgroup, uint lane, uint thread_index) {
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
      y[head * head_dim + thread_index] = sum / total * sigmoid(gate);
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

FN HeadPart prepared_query(device const float* projections, device const float* q_norm, device const float* rope,
                           AttentionArgs a, uint head, uint position, uint lane) {
  HeadPart part = head_part(projections + head * 2 * head_dim, lane);
  normalize_part(part, q_norm, a.eps, lane);
  rotate_part(part, rope, a.rotary_dim, position, lane);
  UNROLL
  for (uint i = 0; i < 8; ++i) part.v[i] *= 0.0625f;  // 1 / sqrt(head_dim)
  return part;
}

FN void store_part(device float* to, HeadPart part, uint lane) {
  UNROLL
  for (uint i = 0; i < 8; ++i) to[lane * 8 + i] = part.v[i];
}

// Tokens [first, end) of the context: what this split has of it.
FN uint2 split_range(AttentionArgs a, uint split, uint context) {
  const uint share = (context + a.splits * 32 - 1) / (a.splits * 32) * 32;
  uint2 range;
  range.x = min_u(split * share, context);
  range.y = min_u(range.x + share, context);
  return range;
}

// One thread's dimension of a head's result.
FN void store_result(device const float* projections, device float* y, device float* partial, AttentionArgs a,
                     uint head, uint split, float sum, float top, float total, uint dim) {
  if (a.splits == 1) {
    y[head * head_dim + dim] = sum / total * sigmoid(projections[(head * 2 + 1) * head_dim + dim]);
    return;
  }
  device float* out = partial + (head * a.splits + split) * (head_dim + 2);
  out[dim] = sum;
  if (dim == 0) {
    out[head_dim] = top;
    out[head_dim + 1] = total;
  }
}

// Norm, RoPE and the KV pool for one token: a head a simdgroup.
KERNEL(256, prepare_step, IN(0, float, projections), WEIGHTS(1, float, q_norm), WEIGHTS(2, float, k_norm),
       WEIGHTS(3, float, rope), IN(4, SequenceStep, step), IN(5, uint, blocks), INOUT(6, bf16, pool), OUT(7, float, q),
       ARGS(8, AttentionArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  const uint head = group.x * 8 + simdgroup, position = step[0].position;
  if (head >= a.heads + a.kv_heads) return;  // the whole simdgroup, and there is no barrier
  if (head < a.heads) {
    store_part(q + head * head_dim, prepared_query(projections, q_norm, rope, a, head, position, lane), lane);
    return;
  }
  for (uint half = 0; half < 2; ++half) {
    plain_store_new_token(projections + 2 * a.heads * head_dim, k_norm, rope, pool, blocks, a, head - a.heads, position,
                          half, lane);
  }
}

KERNEL(256, attend_prepared, IN(0, float, q), IN(1, float, projections), IN(2, SequenceStep, step), IN(3, uint, blocks),
       INOUT(4, bf16, pool), OUT(5, float, y), OUT(6, float, partial), ARGS(7, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(float, sums, 8 * head_dim);
  SHARED(float, largest, 8 * step_heads);
  SHARED(float, totals, 8 * step_heads);
  wait_for_inputs();
  const uint kv_head = group.y, per_kv = a.heads / a.kv_heads;
  const uint2 range = split_range(a, group.x, step[0].position + 1);
  for (uint pass = 0; pass < per_kv; pass += step_heads) {
    const uint heads = min_u(step_heads, per_kv - pass), first_head = kv_head * per_kv + pass;
    HeadPart queries[step_heads];
    PlainSoftmax seen;
    seen.largest = lowest;
    seen.total = 0;
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      queries[h] = head_part(q + (first_head + min_u(h, heads - 1)) * head_dim, lane);
      UNROLL
      for (uint i = 0; i < 8; ++i) seen.sum[h][i] = 0;
    }
    plain_pass_over_keys(seen, queries, pool, blocks, a, kv_head, range.x, range.y, simdgroup, lane);
    threadgroup_sync();  // sums may still be read from the pass before
    plain_finish_heads(seen, sums, largest, totals, projections, y, partial, a, first_head, heads, group.x, simdgroup,
                       lane, thread_index);
  }
}

// A query head by itself. Every head of a KV head writes the same new key and value, so that none waits for another.
KERNEL(256, attend_alone, IN(0, float, projections), WEIGHTS(1, float, q_norm), WEIGHTS(2, float, k_norm),
       WEIGHTS(3, float, rope), IN(4, SequenceStep, step), IN(5, uint, blocks), INOUT(6, bf16, pool), OUT(7, float, y),
       OUT(8, float, partial), ARGS(9, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(float, sums, 8 * head_dim);
  SHARED(float, largest, 8);
  SHARED(float, totals, 8);
  wait_for_inputs();
  const uint head = group.y, kv_head = head / (a.heads / a.kv_heads), position = step[0].position;
  const uint2 range = split_range(a, group.x, position + 1);
  if (range.x <= position && position < range.y) {
    plain_store_new_token(projections + 2 * a.heads * head_dim, k_norm, rope, pool, blocks, a, kv_head, position,
                          simdgroup, lane);
  }
  threadgroup_device_sync();  // the new key is read below
  const HeadPart query = prepared_query(projections, q_norm, rope, a, head, position, lane);
  float top = lowest, total = 0, sum[8];
  UNROLL
  for (uint i = 0; i < 8; ++i) sum[i] = 0;
  for (uint token = range.x + simdgroup * plain_keys; token < range.y; token += 8 * plain_keys) {
    HeadPart keys[plain_keys], values[plain_keys];
    UNROLL
    for (uint k = 0; k < plain_keys; ++k) {
      device const bf16* key = pool + key_place(blocks, a, kv_head, min_u(token + k, range.y - 1));
      keys[k] = head_part(key, lane);
      values[k] = head_part(key + value_distance(a), lane);
    }
    float score[plain_keys], next = top;
    UNROLL
    for (uint k = 0; k < plain_keys; ++k) {
      float product = 0;
      UNROLL
      for (uint i = 0; i < 8; ++i) product += query.v[i] * keys[k].v[i];
      score[k] = simd_sum(product);
      if (token + k < range.y) next = max_f(next, score[k]);
    }
    const float shrink = exp_f(top - next);
    top = next;
    total *= shrink;
    UNROLL
    for (uint i = 0; i < 8; ++i) sum[i] *= shrink;
    UNROLL
    for (uint k = 0; k < plain_keys; ++k) {
      const float weight = token + k < range.y ? exp_f(score[k] - top) : 0;
      total += weight;
      UNROLL
      for (uint i = 0; i < 8; ++i) sum[i] += weight * values[k].v[i];
    }
  }
  if (lane == 0) {
    largest[simdgroup] = top;
    totals[simdgroup] = total;
  }
  UNROLL
  for (uint i = 0; i < 8; ++i) sums[simdgroup * head_dim + lane * 8 + i] = sum[i];
  threadgroup_sync();
  float all = 0, all_total = 0, all_top = lowest;
  for (uint s = 0; s < 8; ++s) all_top = max_f(all_top, largest[s]);
  for (uint s = 0; s < 8; ++s) {
    const float factor = exp_f(largest[s] - all_top);
    all_total += totals[s] * factor;
    all += sums[s * head_dim + thread_index] * factor;
  }
  store_result(projections, y, partial, a, head, group.x, all, all_top, all_total, thread_index);
}

// Every thread has a key of its own, 512 bytes from its neighbour's, so that a load of 32 lanes touches 32 lines; values go by
// dimension, a thread each.
KERNEL(256, attend_strided, IN(0, float, projections), WEIGHTS(1, float, q_norm), WEIGHTS(2, float, k_norm),
       WEIGHTS(3, float, rope), IN(4, SequenceStep, step), IN(5, uint, blocks), INOUT(6, bf16, pool), OUT(7, float, y),
       OUT(8, float, partial), ARGS(9, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(float, queries, step_heads* head_dim);
  SHARED(float, scores, step_heads * 256);
  SHARED(float, factors, 3 * step_heads);  // what shrinks the sums; the largest score; the total
  wait_for_inputs();
  const uint kv_head = group.y, per_kv = a.heads / a.kv_heads, position = step[0].position;
  const uint2 range = split_range(a, group.x, position + 1);
  if (range.x <= position && position < range.y) {
    plain_store_new_token(projections + 2 * a.heads * head_dim, k_norm, rope, pool, blocks, a, kv_head, position,
                          simdgroup, lane);
  }
  threadgroup_device_sync();  // the new key is read below
  for (uint pass = 0; pass < per_kv; pass += step_heads) {
    const uint heads = min_u(step_heads, per_kv - pass), first_head = kv_head * per_kv + pass;
    const HeadPart query =
        prepared_query(projections, q_norm, rope, a, first_head + min_u(simdgroup, heads - 1), position, lane);
    threadgroup_sync();  // the pass before has read everything
    UNROLL
    for (uint i = 0; i < 8; ++i) queries[simdgroup * head_dim + lane * 8 + i] = query.v[i];
    float sum[step_heads], top = lowest, total = 0;  // top and total: of head `simdgroup`
    UNROLL
    for (uint h = 0; h < step_heads; ++h) sum[h] = 0;
    for (uint start = range.x; start < range.y; start += 256) {
      const uint count = min_u(256, range.y - start);
      threadgroup_sync();  // queries are there, scores have been read
      float score[step_heads];
      UNROLL
      for (uint h = 0; h < step_heads; ++h) score[h] = 0;
      if (thread_index < count) {
        device const bf16* key = pool + key_place(blocks, a, kv_head, start + thread_index);
        for (uint d = 0; d < head_dim / 8; ++d) {
          const HeadPart part = head_part(key, d);
          UNROLL
          for (uint h = 0; h < step_heads; ++h) {
            UNROLL
            for (uint i = 0; i < 8; ++i) score[h] += queries[h * head_dim + d * 8 + i] * part.v[i];
          }
        }
      }
      UNROLL
      for (uint h = 0; h < step_heads; ++h) scores[h * 256 + thread_index] = thread_index < count ? score[h] : lowest;
      threadgroup_sync();
      float next = top;
      for (uint i = lane; i < 256; i += 32) next = max_f(next, scores[simdgroup * 256 + i]);
      next = simd_max(next);
      float added = 0;
      for (uint i = lane; i < 256; i += 32) {
        const float weight = i < count ? exp_f(scores[simdgroup * 256 + i] - next) : 0;
        scores[simdgroup * 256 + i] = weight;
        added += weight;
      }
      total = total * exp_f(top - next) + simd_sum(added);
      if (lane == 0) factors[simdgroup] = exp_f(top - next);
      top = next;
      threadgroup_sync();
      UNROLL
      for (uint h = 0; h < step_heads; ++h) sum[h] *= factors[h];
      for (uint i = 0; i < count; ++i) {
        const float value = to_float(pool[key_place(blocks, a, kv_head, start + i) + value_distance(a) + thread_index]);
        UNROLL
        for (uint h = 0; h < step_heads; ++h) sum[h] += scores[h * 256 + i] * value;
      }
    }
    if (lane == 0) {
      factors[step_heads + simdgroup] = top;
      factors[2 * step_heads + simdgroup] = total;
    }
    threadgroup_sync();
    UNROLL
    for (uint h = 0; h < step_heads; ++h) {
      if (h < heads) {
        store_result(projections, y, partial, a, first_head + h, group.x, sum[h], factors[step_heads + h],
                     factors[2 * step_heads + h], thread_index);
      }
    }
  }
}

}  // namespace lily::kernels
