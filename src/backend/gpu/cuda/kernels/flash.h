// attend_chunk for tensor cores: `M` rows of (token, head) pairs of one KV head against tiles of 64 keys. A simdgroup has 16 rows,
// whose scores, weights and sums stay in its registers; keys and values are copied behind its back. M is 128, or 64 where a
// multiprocessor has less memory.
#pragma once

namespace lily::kernels {

constexpr uint flash_keys = 64;
constexpr float flash_lowest = -1.0e38f, log2_e = 1.44269504f;
constexpr uint flash_ld = head_dim + 8;  // eight rows at one column lie in different banks

template <uint M>
constexpr uint flash_threads = M * 2;

// Rows of D in threadgroup memory.
template <uint M>
struct FlashMemory {
  bf16 queries[M * flash_ld];  // then results
  bf16 keys[flash_keys * flash_ld];
  bf16 values[flash_keys * flash_ld];
};

// Row r of a tile is head first_head + r % heads of token first_token + r / heads; rows from `rows` on stand for nothing.
struct FlashTile {
  uint first_token, first_head, heads, rows;
  uint kv_head, position;
  uint context;  // keys that the last row sees
};

// The last tokens have most to do and come first.
template <uint M>
FN FlashTile flash_tile(const AttentionArgs& a, uint position, uint kv_head, uint index) {
  FlashTile tile;
  tile.heads = a.heads / a.kv_heads;
  const uint tokens = M / tile.heads, tiles = (a.n + tokens - 1) / tokens;
  tile.first_token = (tiles - 1 - index) * tokens;
  tile.first_head = kv_head * tile.heads;
  const uint here = min_u(tokens, a.n - tile.first_token);
  tile.rows = here * tile.heads;
  tile.kv_head = kv_head;
  tile.position = position;
  tile.context = position + tile.first_token + here;
  return tile;
}

template <uint M>
FN void copy_queries(bf16* to, const bf16* q, const AttentionArgs& a, const FlashTile& tile, uint simdgroup,
                     uint lane) {
  for (uint row = simdgroup; row < M; row += M / 16) {
    const uint there = min_u(row, tile.rows - 1);
    const size_t head = size_t(tile.first_token + there / tile.heads) * a.heads + tile.first_head + there % tile.heads;
    copy_async(to + row * flash_ld + lane * 8, q + head * head_dim + lane * 8, row < tile.rows);
  }
}

// Keys, or values, from `from` on: those that exist, then zeros: a weight of zero must meet a number.
template <uint M>
FN void copy_keys(bf16* to, const bf16* from, uint count, uint simdgroup, uint lane) {
  UNROLL
  for (uint i = 0; i < flash_keys / (M / 16); ++i) {
    const uint row = simdgroup + M / 16 * i;
    copy_async(to + row * flash_ld + lane * 8, from + row * head_dim + lane * 8, row < count);
  }
}

// What a lane has of its simdgroup's 16 rows: of rows lane / 4 (half 0) and that + 8 (half 1), in each block of 8 columns the
// columns lane % 4 * 2 and the next.
struct FlashRows {
  float sums[head_dim / 8][4];
  float largest[2], totals[2];
};

// scores = q k of 16 rows and 64 keys. The next keys are on their way to registers during a product.
FN void flash_scores(float (&scores)[flash_keys / 8][4], const bf16* queries, const bf16* keys, uint lane) {
  constexpr int pairs = flash_keys / 16, steps = head_dim / 16 * pairs;
  const bf16* left_at = queries + lane % 16 * flash_ld + lane / 16 * 8;
  const bf16* right_at = keys + (lane / 16 * 8 + lane % 8) * flash_ld + lane / 8 % 2 * 8;
  UNROLL
  for (uint n = 0; n < flash_keys / 8; ++n) {
    UNROLL
    for (int i = 0; i < 4; ++i) scores[n][i] = 0;
  }
  uint left[2][4], right[2][4];
  load_matrices(left[0], left_at);
  load_matrices(right[0], right_at);
  UNROLL
  for (int s = 0; s < steps; ++s) {
    const int k = s / pairs, n = s % pairs, next = s + 1;
    if (next < steps) load_matrices(right[next % 2], right_at + next % pairs * 16 * flash_ld + next / pairs * 16);
    if (n == 0 && k + 1 < int(head_dim / 16)) load_matrices(left[(k + 1) % 2], left_at + (k + 1) * 16);
    const uint low[2] = {right[s % 2][0], right[s % 2][1]}, high[2] = {right[s % 2][2], right[s % 2][3]};
    mma(scores[2 * n], left[k % 2], low);
    mma(scores[2 * n + 1], left[k % 2], high);
  }
}

// Scores become weights; what was summed so far shrinks. Row half h sees the first visible[h] keys of the tile.
FN void flash_softmax(float (&scores)[flash_keys / 8][4], FlashRows& rows, const uint (&visible)[2], uint lane) {
  float factor[2];
  UNROLL
  for (int h = 0; h < 2; ++h) {
    float top = rows.largest[h];
    UNROLL
    for (int i = 0; i < int(flash_keys / 4); ++i) {
      float& score = scores[i / 2][h * 2 + i % 2];
      if (visible[h] < flash_keys && i / 2 * 8 + lane % 4 * 2 + i % 2 >= visible[h]) score = flash_lowest;
      top = max_f(top, score);
    }
    top = max_f(top, simd_shuffle_xor(top, 1));
    top = max_f(top, simd_shuffle_xor(top, 2));
    factor[h] = exp2_f((rows.largest[h] - top) * log2_e);
    rows.largest[h] = top;
    const float shift = top * log2_e;
    float total = rows.totals[h] * factor[h];
    UNROLL
    for (int i = 0; i < int(flash_keys / 4); ++i) {
      float& score = scores[i / 2][h * 2 + i % 2];
      score = exp2_f(score * log2_e - shift);
      total += score;
    }
    rows.totals[h] = total;
  }
  if (simd_ballot(factor[0] != 1.0f || factor[1] != 1.0f) == 0) return;  // no maximum moved: most tiles
  UNROLL
  for (int n = 0; n < int(head_dim / 8); ++n) {
    UNROLL
    for (int i = 0; i < 4; ++i) rows.sums[n][i] *= factor[i / 2];
  }
}

// sums += weights v. Accumulators of scores are, in pairs, the left operand as it has to be.
FN void flash_values(FlashRows& rows, const float (&weights)[flash_keys / 8][4], const bf16* values, uint lane) {
  constexpr int pairs = head_dim / 16, steps = flash_keys / 16 * pairs;
  const bf16* right_at = values + lane % 16 * flash_ld + lane / 16 * 8;
  uint right[2][4];
  load_matrices_transposed(right[0], right_at);
  UNROLL
  for (int s = 0; s < steps; ++s) {
    const int k = s / pairs, n = s % pairs, next = s + 1;
    if (next < steps) {
      load_matrices_transposed(right[next % 2], right_at + next / pairs * 16 * flash_ld + next % pairs * 16);
    }
    const uint left[4] = {pack_bf16(weights[2 * k][0], weights[2 * k][1]),
                          pack_bf16(weights[2 * k][2], weights[2 * k][3]),
                          pack_bf16(weights[2 * k + 1][0], weights[2 * k + 1][1]),
                          pack_bf16(weights[2 * k + 1][2], weights[2 * k + 1][3])};
    const uint low[2] = {right[s % 2][0], right[s % 2][1]}, high[2] = {right[s % 2][2], right[s % 2][3]};
    mma(rows.sums[2 * n], left, low);
    mma(rows.sums[2 * n + 1], left, high);
  }
}

// A simdgroup's rows, divided by their totals and gated, to y by way of `out`, where its queries were.
FN void flash_finish(FlashRows& rows, bf16* out, const bf16* projections, bf16* y, const AttentionArgs& a,
                     const FlashTile& tile, uint first_row, uint lane) {
  UNROLL
  for (int h = 0; h < 2; ++h) {
    float total = rows.totals[h];
    total += simd_shuffle_xor(total, 1);
    total += simd_shuffle_xor(total, 2);
    const float scale = 1.0f / total;
    const uint row = h * 8 + lane / 4, there = min_u(first_row + row, tile.rows - 1);
    const size_t token = tile.first_token + there / tile.heads;
    const bf16* gates = projections + token * a.stride + ((tile.first_head + there % tile.heads) * 2 + 1) * head_dim;
    UNROLL
    for (int n = 0; n < int(head_dim / 8); ++n) {
      const uint d = n * 8 + lane % 4 * 2;
      const float2 gate = unpack_bf16(load_pair(gates + d));
      store_pair(out + row * flash_ld + d, pack_bf16(rows.sums[n][h * 2] * scale * sigmoid(gate.x),
                                                     rows.sums[n][h * 2 + 1] * scale * sigmoid(gate.y)));
    }
  }
  simdgroup_sync();
  for (uint row = 0; row < 16 && first_row + row < tile.rows; ++row) {
    const uint r = first_row + row;
    const size_t head = size_t(tile.first_token + r / tile.heads) * a.heads + tile.first_head + r % tile.heads;
    store_uint4(y + head * head_dim + lane * 8, load_uint4(out + row * flash_ld + lane * 8));
  }
}

template <uint M>
FN void flash_block(const bf16* q, const bf16* projections, const SequenceStep* step, const uint* blocks,
                    const bf16* pool, bf16* y, const AttentionArgs& a, unsigned char* memory_bytes, uint thread_index,
                    uint3 group) {
  FlashMemory<M>& memory = *reinterpret_cast<FlashMemory<M>*>(memory_bytes);
  const uint simdgroup = thread_index / 32, lane = thread_index % 32, first_row = simdgroup * 16;
  const FlashTile tile = flash_tile<M>(a, step[0].position, group.x, group.y);
  const uint tiles = (tile.context + flash_keys - 1) / flash_keys;
  const ulong distance = value_distance(a);
  bf16* const own = memory.queries + first_row * flash_ld;
  const bf16* from = pool + key_place(blocks, a, tile.kv_head, 0);
  copy_queries<M>(memory.queries, q, a, tile, simdgroup, lane);
  copy_keys<M>(memory.keys, from, tile.context, simdgroup, lane);
  copies_commit();

  uint sees[2];  // keys that the lane's two rows see
  FlashRows rows;
  UNROLL
  for (int h = 0; h < 2; ++h) {
    sees[h] = min_u(tile.position + tile.first_token + (first_row + h * 8 + lane / 4) / tile.heads + 1, tile.context);
    rows.largest[h] = flash_lowest;
    rows.totals[h] = 0;
  }
  UNROLL
  for (int n = 0; n < int(head_dim / 8); ++n) {
    UNROLL
    for (int i = 0; i < 4; ++i) rows.sums[n][i] = 0;
  }
  for (uint t = 0; t < tiles; ++t) {
    const uint first = t * flash_keys;
    copies_wait<0>();
    threadgroup_sync();  // keys are there, and the values before them are used up
    copy_keys<M>(memory.values, from + distance, tile.context - first, simdgroup, lane);
    copies_commit();
    float scores[flash_keys / 8][4];
    flash_scores(scores, own, memory.keys, lane);
    const uint visible[2] = {sees[0] > first ? sees[0] - first : 0, sees[1] > first ? sees[1] - first : 0};
    flash_softmax(scores, rows, visible, lane);
    copies_wait<0>();
    threadgroup_sync();  // values are there, and the keys are used up
    if (t + 1 < tiles) {
      from = pool + key_place(blocks, a, tile.kv_head, first + flash_keys);
      copy_keys<M>(memory.keys, from, tile.context - first - flash_keys, simdgroup, lane);
      copies_commit();
    }
    flash_values(rows, scores, memory.values, lane);
  }
  flash_finish(rows, own, projections, y, a, tile, first_row, lane);
}

}  // namespace lily::kernels
