// Prefill attention: a chunk's queries against the context, as flash attention does it: tiles of scores that never leave the
// chip, softmax on the way (Dao et al., arXiv 2205.14135).
#pragma once

#include "kernels/activations.h"
#include "kernels/attention.h"

namespace lily::kernels {

constexpr uint chunk_tokens = 4;  // of a tile of queries
constexpr uint chunk_heads = 8;   // of one KV head, beside them: each key serves 32 rows
constexpr uint chunk_rows = chunk_tokens * chunk_heads;
constexpr uint chunk_keys = 16;  // of a tile of keys, or of values, in threadgroup memory
constexpr uint chunk_ld = head_dim + 8;
constexpr uint score_ld = chunk_keys + 4, weight_ld = chunk_keys + 8;

// Row r of a tile is token r / chunk_heads and head r % chunk_heads of the pass.
struct ChunkTile {
  uint first_token, first_head, heads, position;
};

FN bool tile_has(ChunkTile tile, AttentionArgs a, uint row) {
  return row % chunk_heads < tile.heads && tile.first_token + row / chunk_heads < a.n;
}

FN void load_queries(threadgroup bf16* to, device const bf16* q, ChunkTile tile, AttentionArgs a, uint thread_index) {
  for (uint i = thread_index; i < chunk_rows * head_dim / 8; i += 128) {
    const uint row = i / (head_dim / 8), column = i % (head_dim / 8) * 8;
    uint4 v;
    v.x = v.y = v.z = v.w = 0;
    if (tile_has(tile, a, row)) {
      const uint token = tile.first_token + row / chunk_heads, head = tile.first_head + row % chunk_heads;
      v = load_uint4(q + (token * a.heads + head) * head_dim + column);
    }
    store_uint4(to + row * chunk_ld + column, v);
  }
}

// Keys (or values, `distance` further) of tokens [first, first + chunk_keys), zeros from `end` on.
FN void load_keys(threadgroup bf16* to, device const bf16* pool, device const uint* blocks, AttentionArgs a,
                  uint kv_head, uint first, uint end, ulong distance, uint thread_index) {
  for (uint i = thread_index; i < chunk_keys * head_dim / 8; i += 128) {
    const uint row = i / (head_dim / 8), column = i % (head_dim / 8) * 8;
    uint4 v;
    v.x = v.y = v.z = v.w = 0;
    if (first + row < end) v = load_uint4(pool + key_place(blocks, a, kv_head, first + row) + distance + column);
    store_uint4(to + row * chunk_ld + column, v);
  }
}

// Scores -> weights in bf16, and by what the row's sums so far shrink. 4 threads a row.
FN void update_softmax(threadgroup const float* scores, threadgroup bf16* weights, threadgroup float* shrink,
                       thread float& largest, thread float& total, uint visible, uint thread_index) {
  const uint row = thread_index / 4, part = thread_index % 4 * (chunk_keys / 4);
  float score[chunk_keys / 4], top = largest, sum = 0;
  UNROLL
  for (uint i = 0; i < chunk_keys / 4; ++i) {
    score[i] = part + i < visible ? scores[row * score_ld + part + i] : -3.0e38f;
    top = max_f(top, score[i]);
  }
  top = max_f(top, simd_shuffle_xor(top, 1));
  top = max_f(top, simd_shuffle_xor(top, 2));
  UNROLL
  for (uint i = 0; i < chunk_keys / 4; ++i) {
    const bf16 weight = to_bf16(part + i < visible ? exp_f(score[i] - top) : 0.0f);
    sum += to_float(weight);  // as the product will use it
    weights[row * weight_ld + part + i] = weight;
  }
  sum += simd_shuffle_xor(sum, 1);
  sum += simd_shuffle_xor(sum, 2);
  const float factor = exp_f(largest - top);
  total = total * factor + sum;
  largest = top;
  if (thread_index % 4 == 0) shrink[row] = factor;
}

KERNEL(128, attend_chunk, IN(0, bf16, q), IN(1, bf16, projections), IN(2, SequenceStep, step), IN(3, uint, blocks),
       IN(4, bf16, pool), OUT(5, bf16, y), ARGS(6, AttentionArgs, a)) {
  THREAD_IDS
  SHARED(bf16, queries, chunk_rows * chunk_ld);
  SHARED(bf16, keys, chunk_keys * chunk_ld);  // then values
  SHARED(float, scores, chunk_rows* score_ld);
  SHARED(bf16, weights, chunk_rows * weight_ld);
  SHARED(float, shrink, chunk_rows);
  wait_for_inputs();
  const uint kv_head = group.y, per_kv = a.heads / a.kv_heads, row = thread_index / 4;
  ChunkTile tile;
  tile.position = step[0].position;
  tile.first_token = group.x * chunk_tokens;
  const uint context = tile.position + min_u(tile.first_token + chunk_tokens, a.n);  // of the last token
  for (uint pass = 0; pass < per_kv; pass += chunk_heads) {
    tile.first_head = kv_head * per_kv + pass;
    tile.heads = min_u(chunk_heads, per_kv - pass);
    threadgroup_sync();  // the pass before has been read
    load_queries(queries, q, tile, a, thread_index);
    Tile<chunk_rows, 64> sums;  // of 64 dimensions a simdgroup
    tile_zero(sums);
    float largest = -3.0e38f, total = 0;
    const uint own_context = tile.position + tile.first_token + row / chunk_heads + 1;
    for (uint first = 0; first < context; first += chunk_keys) {
      load_keys(keys, pool, blocks, a, kv_head, first, context, 0, thread_index);
      threadgroup_sync();
      Tile<16, 8> score;
      tile_zero(score);
      const uint top = simdgroup % 2 * 16, left = simdgroup / 2 * 8;
      tile_mma<16, 8, head_dim>(score, queries + top * chunk_ld, chunk_ld, keys + left * chunk_ld, chunk_ld);
      tile_store(score, scores + top * score_ld + left, score_ld);
      threadgroup_sync();
      load_keys(keys, pool, blocks, a, kv_head, first, context, value_distance(a), thread_index);
      update_softmax(scores, weights, shrink, largest, total, own_context > first ? own_context - first : 0,
                     thread_index);
      threadgroup_sync();
      tile_scale_rows(sums, shrink);
      tile_mma_transposed<chunk_rows, 64, chunk_keys>(sums, weights, weight_ld, keys + simdgroup * 64, chunk_ld);
      threadgroup_sync();  // values become keys again
    }
    if (thread_index % 4 == 0) shrink[row] = 1.0f / total;
    threadgroup_sync();
    tile_scale_rows(sums, shrink);
    // One simdgroup's dimensions at a time, through the queries' memory.
    threadgroup float* out = (threadgroup float*)queries;
    for (uint part = 0; part < 4; ++part) {
      threadgroup_sync();
      if (simdgroup == part) tile_store(sums, out, 64);
      threadgroup_sync();
      for (uint i = thread_index; i < chunk_rows * 64; i += 128) {
        const uint r = i / 64, d = part * 64 + i % 64;
        if (!tile_has(tile, a, r)) continue;
        const uint token = tile.first_token + r / chunk_heads, head = tile.first_head + r % chunk_heads;
        const float gate = to_float(projections[token * a.stride + (head * 2 + 1) * head_dim + d]);
        y[(token * a.heads + head) * head_dim + d] = to_bf16(out[i] * sigmoid(gate));
      }
    }
  }
}

}  // namespace lily::kernels
