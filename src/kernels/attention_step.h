// Decode attention: one token against its context. The heads of a KV head sit in one threadgroup, so that each key and value is
// read once; a long context is split among threadgroups, whose partial softmaxes are merged.
//
// Both products are the matrix unit's, whose tiles have 16 rows: 8 query heads, and what rounding to bf16 takes from them. The
// sum of the two products is as good as float32 queries and weights, and costs no more than half-empty tiles would.
#pragma once

#include "kernels/activations.h"
#include "kernels/attention.h"

namespace lily::kernels {

constexpr uint step_heads = 8;  // query heads that a pass over the context serves
constexpr uint step_keys = 32;  // of a tile; divides a block of the pool
constexpr uint step_ld = head_dim + 8, step_score_ld = step_keys + 4, step_weight_ld = step_keys + 8;
constexpr float lowest = -3.0e38f;

// Of a threadgroup: tiles [first, end) of the context up to `position`, of all `tiles`.
struct StepSplit {
  uint first, end, tiles, position, kv_head;
};

FN StepSplit step_split(uint position, uint split, uint splits, uint kv_head) {
  StepSplit s;
  s.position = position;
  s.tiles = position / step_keys + 1;
  s.first = s.tiles * split / splits;
  s.end = s.tiles * (split + 1) / splits;
  s.kv_head = kv_head;
  return s;
}

// x as the sum of two bf16.
FN float rest_of(float x) { return x - to_float(to_bf16(x)); }

// The queries of a pass, a head a simdgroup, to queries [16, step_ld].
FN void load_step_queries(threadgroup bf16* queries, device const float* heads, uint count, device const float* q_norm,
                          device const float* rope, AttentionArgs a, uint position, uint simdgroup, uint lane) {
  HeadPart part = head_part(heads + min_u(simdgroup, count - 1) * 2 * head_dim, lane), rest;
  normalize_part(part, q_norm, a.eps, lane);
  rotate_part(part, rope, a.rotary_dim, position, lane);
  UNROLL
  for (uint i = 0; i < 8; ++i) {
    part.v[i] *= 0.0625f;  // 1 / sqrt(head_dim)
    rest.v[i] = rest_of(part.v[i]);
  }
  store_uint4(queries + simdgroup * step_ld + lane * 8, pack_part(part));
  store_uint4(queries + (step_heads + simdgroup) * step_ld + lane * 8, pack_part(rest));
}

// The new token's key (by simdgroup 0) and value (by simdgroup 1) to the pool, and as they are there to fresh [2, D].
FN void store_new_token(threadgroup bf16* fresh, device const float* keys, device const float* k_norm,
                        device const float* rope, device bf16* to, AttentionArgs a, uint kv_head, uint position,
                        uint simdgroup, uint lane) {
  if (simdgroup > 1) return;
  HeadPart part = head_part(keys + (simdgroup == 0 ? kv_head : a.kv_heads + kv_head) * head_dim, lane);
  if (simdgroup == 0) {
    normalize_part(part, k_norm, a.eps, lane);
    rotate_part(part, rope, a.rotary_dim, position, lane);
  }
  const uint4 packed = pack_part(part);
  store_uint4(to + (simdgroup == 0 ? 0 : value_distance(a)) + lane * 8, packed);
  store_uint4(fresh + simdgroup * head_dim + lane * 8, packed);
}

// Keys or values of a tile on their way through registers: rows simdgroup + 8 i, of which the first `count` exist. The others
// are zero: no weight of zero may meet a NaN.
struct StepRows {
  uint4 v[step_keys / 8];
};
FN StepRows load_step_rows(device const bf16* from, uint count, uint simdgroup, uint lane) {
  StepRows rows;
  UNROLL
  for (uint i = 0; i < step_keys / 8; ++i) {
    const uint row = simdgroup + 8 * i;
    rows.v[i].x = rows.v[i].y = rows.v[i].z = rows.v[i].w = 0;
    if (row < count) rows.v[i] = load_uint4(from + row * head_dim + lane * 8);
  }
  return rows;
}
// Row `fresh_row`, where the tile has it, is the new token's.
FN void store_step_rows(threadgroup bf16* to, thread const StepRows& rows, threadgroup const bf16* fresh,
                        uint fresh_row, uint simdgroup, uint lane) {
  UNROLL
  for (uint i = 0; i < step_keys / 8; ++i) {
    const uint row = simdgroup + 8 * i;
    store_uint4(to + row * step_ld + lane * 8, row == fresh_row ? load_uint4(fresh + lane * 8) : rows.v[i]);
  }
}

// scores [2, 16, step_score_ld]: the products over each half of D. A simdgroup has 8 keys and one half.
FN void step_scores(threadgroup float* scores, threadgroup const bf16* queries, threadgroup const bf16* keys,
                    uint simdgroup) {
  const uint first = simdgroup % 4 * 8, half = simdgroup / 4, d = half * (head_dim / 2);
  Tile<16, 8> score;
  tile_zero(score);
  tile_mma<16, 8, head_dim / 2>(score, queries + d, step_ld, keys + first * step_ld + d, step_ld);
  tile_store(score, scores + half * 16 * step_score_ld + first, step_score_ld);
}

// Scores -> weights [16, step_weight_ld], and by what sums so far shrink. Simdgroup s has head s, a lane one key.
FN void step_softmax(threadgroup const float* scores, threadgroup bf16* weights, threadgroup float* shrink,
                     thread float& largest, thread float& total, uint visible, uint simdgroup, uint lane) {
  float score = 0;
  UNROLL
  for (uint i = 0; i < 4; ++i) score += scores[(simdgroup + i * step_heads) * step_score_ld + lane];
  const float top = max_f(largest, simd_max(lane < visible ? score : lowest));
  const float weight = lane < visible ? exp_f(score - top) : 0.0f, factor = exp_f(largest - top);
  weights[simdgroup * step_weight_ld + lane] = to_bf16(weight);
  weights[(step_heads + simdgroup) * step_weight_ld + lane] = to_bf16(rest_of(weight));
  if (lane < 2) shrink[lane * step_heads + simdgroup] = factor;
  total = total * factor + weight;  // of the lane's keys
  largest = top;
}

// What a pass has seen, for its heads, to y or to partial.
FN void finish_heads(threadgroup const float* sums, threadgroup const float* largest, threadgroup const float* totals,
                     device const float* projections, device float* y, device float* partial, AttentionArgs a,
                     uint first_head, uint heads, uint split, uint thread_index) {
  for (uint h = 0; h < heads; ++h) {
    const uint head = first_head + h;
    const float sum = sums[h * step_ld + thread_index] + sums[(step_heads + h) * step_ld + thread_index];
    if (a.splits == 1) {
      const float gate = projections[(head * 2 + 1) * head_dim + thread_index];
      y[head * head_dim + thread_index] = sum / totals[h] * sigmoid(gate);
    } else {
      device float* out = partial + (head * a.splits + split) * (head_dim + 2);
      out[thread_index] = sum;
      if (thread_index == 0) {
        out[head_dim] = largest[h];
        out[head_dim + 1] = totals[h];
      }
    }
  }
}

// A split without keys.
FN void finish_empty(device float* partial, AttentionArgs a, uint kv_head, uint split, uint thread_index) {
  const uint per_kv = a.heads / a.kv_heads;
  if (thread_index >= per_kv) return;
  device float* out = partial + ((kv_head * per_kv + thread_index) * a.splits + split) * (head_dim + 2);
  out[head_dim] = lowest;
  out[head_dim + 1] = 0;
}

KERNEL(256, attend_step, IN(0, float, projections), WEIGHTS(1, float, q_norm), WEIGHTS(2, float, k_norm),
       WEIGHTS(3, float, rope), IN(4, SequenceStep, step), IN(5, uint, blocks), INOUT(6, bf16, pool), OUT(7, float, y),
       OUT(8, float, partial), ARGS(9, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(bf16, queries, 16 * step_ld);
  SHARED(bf16, keys, step_keys * step_ld);  // then values; at the end float sums [16, step_ld]
  SHARED(bf16, fresh, 2 * head_dim);
  SHARED(float, scores, 2 * 16 * step_score_ld);
  SHARED(bf16, weights, 16 * step_weight_ld);
  SHARED(float, shrink, 16);
  SHARED(float, largest_of, step_heads);
  SHARED(float, total_of, step_heads);
  wait_for_inputs();
  const StepSplit s = step_split(step[0].position, group.x, a.splits, group.y);
  if (s.first == s.end) {
    finish_empty(partial, a, s.kv_head, group.x, thread_index);
    return;
  }
  constexpr uint block_tiles = kv_block_tokens / step_keys;
  const ulong distance = value_distance(a);
  const uint per_kv = a.heads / a.kv_heads;
  for (uint pass = 0; pass < per_kv; pass += step_heads) {
    const uint heads = min_u(step_heads, per_kv - pass), first_head = s.kv_head * per_kv + pass;
    device const bf16* from = pool + key_place(blocks, a, s.kv_head, s.first * step_keys);
    StepRows key = load_step_rows(from, s.position - s.first * step_keys, simdgroup, lane);
    StepRows value = load_step_rows(from + distance, s.position - s.first * step_keys, simdgroup, lane);
    uint next_block = blocks[min_u(s.first + 1, s.tiles - 1) / block_tiles];
    load_step_queries(queries, projections + first_head * 2 * head_dim, heads, q_norm, rope, a, s.position, simdgroup,
                      lane);
    if (s.end == s.tiles && pass == 0) {
      store_new_token(fresh, projections + 2 * a.heads * head_dim, k_norm, rope,
                      pool + key_place(blocks, a, s.kv_head, s.position), a, s.kv_head, s.position, simdgroup, lane);
    }
    threadgroup_sync();
    float largest = lowest, total = 0;
    Tile<16, 32> sums;  // of 32 dimensions a simdgroup
    tile_zero(sums);
    for (uint t = s.first; t < s.end; ++t) {
      const uint fresh_row = s.position - t * step_keys;
      store_step_rows(keys, key, fresh, fresh_row, simdgroup, lane);
      // The next tile is on its way while this one is worked on.
      from = pool + block_place(next_block, a, s.kv_head) + (t + 1) % block_tiles * step_keys * head_dim;
      const uint next_count = t + 1 < s.end ? fresh_row - step_keys : 0;
      key = load_step_rows(from, next_count, simdgroup, lane);
      next_block = blocks[min_u(t + 2, s.tiles - 1) / block_tiles];
      threadgroup_sync();
      step_scores(scores, queries, keys, simdgroup);
      threadgroup_sync();
      store_step_rows(keys, value, fresh + head_dim, fresh_row, simdgroup, lane);
      value = load_step_rows(from + distance, next_count, simdgroup, lane);
      step_softmax(scores, weights, shrink, largest, total, fresh_row + 1, simdgroup, lane);
      threadgroup_sync();
      tile_scale_rows(sums, shrink);
      tile_mma_transposed<16, 32, step_keys>(sums, weights, step_weight_ld, keys + simdgroup * 32, step_ld);
      threadgroup_sync();  // values become keys again
    }
    total = simd_sum(total);
    if (lane == 0) {
      largest_of[simdgroup] = largest;
      total_of[simdgroup] = total;
    }
    threadgroup float* out = (threadgroup float*)keys;
    tile_store(sums, out + simdgroup * 32, step_ld);
    threadgroup_sync();
    finish_heads(out, largest_of, total_of, projections, y, partial, a, first_head, heads, group.x, thread_index);
    threadgroup_sync();  // the next pass writes over it
  }
}

// A threadgroup has 64 dimensions of a head; each quarter of its threads adds up every fourth split.
KERNEL(256, attend_merge, IN(0, float, projections), IN(1, float, partial), OUT(2, float, y),
       ARGS(3, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(float, factors, max_splits);
  SHARED(float, sums, 256);
  wait_for_inputs();
  constexpr uint stride = head_dim + 2, in_flight = 8;
  const uint head = group.x, d = group.y * 64 + thread_index % 64, quarter = thread_index / 64;
  device const float* parts = partial + head * a.splits * stride;
  float top = lowest, total = 0;
  for (uint s = lane; s < a.splits; s += 32) top = max_f(top, parts[s * stride + head_dim]);
  top = simd_max(top);
  for (uint s = lane; s < max_splits; s += 32) {
    // An empty split has a total of zero and sums of nothing.
    const float part = s < a.splits ? parts[s * stride + head_dim + 1] : 0.0f;
    const float factor = part > 0 ? exp_f(parts[s * stride + head_dim] - top) : 0.0f;
    total += part * factor;
    if (simdgroup == 0) factors[s] = factor;
  }
  total = simd_sum(total);
  threadgroup_sync();
  float sum = 0;
  for (uint first = quarter; first < a.splits; first += 4 * in_flight) {
    float part[in_flight], factor[in_flight];
    UNROLL
    for (uint i = 0; i < in_flight; ++i) {
      const uint s = first + i * 4;
      factor[i] = s < a.splits ? factors[s] : 0.0f;
      part[i] = factor[i] > 0 ? parts[s * stride + d] : 0.0f;
    }
    UNROLL
    for (uint i = 0; i < in_flight; ++i) sum += factor[i] * part[i];
  }
  sums[thread_index] = sum;
  threadgroup_sync();
  if (quarter > 0) return;
  sum += sums[thread_index + 64] + sums[thread_index + 128] + sums[thread_index + 192];
  y[head * head_dim + d] = sum / total * sigmoid(projections[(head * 2 + 1) * head_dim + d]);
}

}  // namespace lily::kernels
