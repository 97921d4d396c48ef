// The three products of prefill over gemm_4.h: dense, gate and up of the experts, down of the experts.
#pragma once

namespace lily::kernels {

// `most` neighbouring values of a row of y (4 or 8), as many as exist.
template <int most>
FN void put_row_part(bf16* y, const float (&v)[most], uint count, bool aligned) {
  if (count >= most && aligned) {
    UNROLL
    for (int i = 0; i < most; i += 4) {
      store_uint2(y + i, make_uint2(pack_bf16(v[i], v[i + 1]), pack_bf16(v[i + 2], v[i + 3])));
    }
    return;
  }
  UNROLL
  for (uint i = 0; i < most; ++i) {
    if (i < count) y[i] = to_bf16(v[i]);
  }
}
template <int most>
FN void put_row_part(float* y, const float (&v)[most], uint count, bool aligned, bool add) {
  if (count >= most && aligned) {
    UNROLL
    for (int i = 0; i < most; i += 4) {
      const float4 old = add ? load_float4(y + i) : make_float4(0, 0, 0, 0);
      store_float4(y + i, make_float4(old.x + v[i], old.y + v[i + 1], old.z + v[i + 2], old.w + v[i + 3]));
    }
    return;
  }
  UNROLL
  for (uint i = 0; i < most; ++i) {
    if (i < count) y[i] = (add ? y[i] : 0.0f) + v[i];
  }
}

// The neighbouring rows that a lane has of a token: token lane % 4 * 2 + which of the n-th 8.
template <int M_TILES, int N_TILES>
FN void take_row_part(float (&v)[2 * M_TILES], const float (&sums)[M_TILES][N_TILES][4], int n, int which) {
  UNROLL
  for (int i = 0; i < 2 * M_TILES; ++i) v[i] = sums[i / 2][n][i % 2 * 2 + which];
}

// y[token, row] of gemm_64_4: TOKEN_WARPS * N_TILES * 8 tokens by 128 rows.
template <int M_TILES, int N_TILES, int TOKEN_WARPS>
FN void dense_tile(const bf16* x, const uint* codes, const bf16* scales, const bf16* biases, void* y, const GemmArgs& a,
                   uint first_token, uint first_row, unsigned char* memory_bytes, uint thread_index) {
  constexpr int tokens = TOKEN_WARPS * N_TILES * 8;
  GemmMemory<tokens>& memory = *reinterpret_cast<GemmMemory<tokens>*>(memory_bytes);
  const uint simdgroup = thread_index / 32, lane = thread_index % 32;
  GemmSource<tokens> source;
  source.x = x;
  UNROLL
  for (int i = 0; i < tokens / 16; ++i) {
    source.x_rows[i] = min_u(first_token + thread_index / 8 + 16 * i, a.n - 1) * a.cols;
  }
  const uint row = min_u(first_row + row_of_place<M_TILES>(thread_index), a.rows - 1);
  set_weights(source, codes, scales, biases, a.first_row + row, a.cols, a.group_size);
  start_codes(source, memory, thread_index);
  wait_for_inputs();

  const uint warp_token = simdgroup % TOKEN_WARPS * (N_TILES * 8), warp_row = simdgroup / TOKEN_WARPS * (M_TILES * 16);
  float sums[M_TILES][N_TILES][4];
  multiply<M_TILES, N_TILES>(source, memory, sums, thread_index, warp_row, warp_token);

  const uint out = first_row + warp_row + lane / 4 * (2 * M_TILES);
  const bool aligned = a.y_stride % 4 == 0;
  UNROLL
  for (int part = 0; part < N_TILES * 2; ++part) {
    const uint token = first_token + warp_token + part / 2 * 8 + lane % 4 * 2 + part % 2;
    if (token >= a.n || out >= a.rows) continue;
    float v[2 * M_TILES];
    take_row_part(v, sums, part / 2, part % 2);
    const size_t place = size_t(token) * a.y_stride + out;
    if (a.output == gemm_store_bf16) {
      put_row_part(static_cast<bf16*>(y) + place, v, a.rows - out, aligned);
    } else {
      put_row_part(static_cast<float*>(y) + place, v, a.rows - out, aligned, a.output == gemm_add_f32);
    }
  }
}

constexpr uint dense_tokens = 128;  // of a threadgroup

// The last tile of few tokens does less.
FN void dense_block(const bf16* x, const uint* codes, const bf16* scales, const bf16* biases, void* y,
                    const GemmArgs& a, unsigned char* memory, uint thread_index, uint3 group) {
  const uint first_token = group.x * dense_tokens, first_row = group.y * gemm_rows;
  if (a.n - first_token > 64) {
    dense_tile<4, 8, 2>(x, codes, scales, biases, y, a, first_token, first_row, memory, thread_index);
  } else {
    dense_tile<4, 4, 2>(x, codes, scales, biases, y, a, first_token, first_row, memory, thread_index);
  }
}

constexpr uint map_tile = 64;  // rows of a block of the map of moe_*_64_4

// A block of the map: rows [first, end) of the sorted pairs, all of one expert.
struct ExpertBlock {
  uint expert, first, end;
};
FN ExpertBlock expert_block(const uint* starts, const uint* blocks, uint number, uint tile) {
  ExpertBlock block;
  block.expert = blocks[1 + 2 * number];
  block.first = blocks[2 + 2 * number];
  block.end = min_u(block.first + tile, starts[block.expert + 1]);
  return block;
}

// y[sorted row, r] = silu(gate) * up, N_TILES * 8 sorted rows by 64 rows of both matrices: a simdgroup has 16 of gate and the same 16
// of up.
template <int N_TILES>
FN void gate_up_tile(const bf16* x, const uint* pairs, const uint* gate_codes, const bf16* gate_scales,
                     const bf16* gate_biases, const uint* up_codes, const bf16* up_scales, const bf16* up_biases,
                     bf16* y, const GroupedGemmArgs& a, const ExpertBlock& block, unsigned char* memory_bytes,
                     uint thread_index, uint3 group) {
  constexpr int tokens = N_TILES * 8;
  GemmMemory<tokens>& memory = *reinterpret_cast<GemmMemory<tokens>*>(memory_bytes);
  const uint simdgroup = thread_index / 32, lane = thread_index % 32, first_row = group.x * 64;
  GemmSource<tokens> source;
  source.x = x;
  UNROLL
  for (int i = 0; i < tokens / 16; ++i) {
    source.x_rows[i] = pairs[min_u(block.first + thread_index / 8 + 16 * i, block.end - 1)] / a.slots * a.cols;
  }
  const uint place = thread_index % 32;
  const uint row = min_u(first_row + thread_index / 32 * 16 + place % 8 * 2 + place / 8 % 2, a.rows - 1);
  const bool is_up = place >= 16;
  set_weights(source, is_up ? up_codes : gate_codes, is_up ? up_scales : gate_scales, is_up ? up_biases : gate_biases,
              block.expert * a.rows + row, a.cols, a.group_size);
  start_codes(source, memory, thread_index);

  float sums[2][N_TILES][4];
  multiply<2, N_TILES>(source, memory, sums, thread_index, simdgroup * 32, 0);

  const uint out = first_row + simdgroup * 16 + lane / 4 * 2;
  UNROLL
  for (int part = 0; part < N_TILES * 2; ++part) {
    const uint sorted = block.first + part / 2 * 8 + lane % 4 * 2 + part % 2;
    if (sorted >= block.end || out >= a.rows) continue;
    float v[2];
    UNROLL
    for (int i = 0; i < 2; ++i) {
      const float gate = sums[0][part / 2][i * 2 + part % 2], up = sums[1][part / 2][i * 2 + part % 2];
      v[i] = gate / (1.0f + exp_f(-gate)) * up;
    }
    bf16* to = y + size_t(sorted) * a.rows + out;
    if (a.rows % 2 == 0) {
      *reinterpret_cast<uint*>(to) = pack_bf16(v[0], v[1]);
    } else {
      to[0] = to_bf16(v[0]);
      if (out + 1 < a.rows) to[1] = to_bf16(v[1]);
    }
  }
}

// Block group.y of the map. One of few rows does less: most experts have a block that is not full.
FN void gate_up_block(const bf16* x, const uint* pairs, const uint* starts, const uint* blocks, const uint* gate_codes,
                      const bf16* gate_scales, const bf16* gate_biases, const uint* up_codes, const bf16* up_scales,
                      const bf16* up_biases, bf16* y, const GroupedGemmArgs& a, unsigned char* memory,
                      uint thread_index, uint3 group) {
  const ExpertBlock block = expert_block(starts, blocks, group.y, map_tile);
  const uint rows = block.end - block.first;
#define LILY_TILE(n_tiles)                                                                                           \
  gate_up_tile<n_tiles>(x, pairs, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases, y, a, block, \
                        memory, thread_index, group)
  if (rows > 32) {
    LILY_TILE(8);
  } else if (rows > 16) {
    LILY_TILE(4);
  } else {
    LILY_TILE(2);
  }
#undef LILY_TILE
}

// z[sorted row, r], N_TILES * 8 sorted rows by 128 rows of the matrix.
template <int N_TILES>
FN void down_tile(const bf16* x, const uint* codes, const bf16* scales, const bf16* biases, bf16* z,
                  const GroupedGemmArgs& a, const ExpertBlock& block, unsigned char* memory_bytes, uint thread_index,
                  uint3 group) {
  constexpr int tokens = N_TILES * 8;
  GemmMemory<tokens>& memory = *reinterpret_cast<GemmMemory<tokens>*>(memory_bytes);
  const uint simdgroup = thread_index / 32, lane = thread_index % 32, first_row = group.x * gemm_rows;
  GemmSource<tokens> source;
  source.x = x;
  UNROLL
  for (int i = 0; i < tokens / 16; ++i) {
    source.x_rows[i] = min_u(block.first + thread_index / 8 + 16 * i, block.end - 1) * a.cols;
  }
  const uint row = min_u(first_row + row_of_place<2>(thread_index), a.rows - 1);
  set_weights(source, codes, scales, biases, block.expert * a.rows + row, a.cols, a.group_size);
  start_codes(source, memory, thread_index);

  float sums[2][N_TILES][4];
  multiply<2, N_TILES>(source, memory, sums, thread_index, simdgroup * 32, 0);

  const uint out = first_row + simdgroup * 32 + lane / 4 * 4;
  UNROLL
  for (int part = 0; part < N_TILES * 2; ++part) {
    const uint sorted = block.first + part / 2 * 8 + lane % 4 * 2 + part % 2;
    if (sorted >= block.end || out >= a.rows) continue;
    float v[4];
    take_row_part(v, sums, part / 2, part % 2);
    put_row_part(z + size_t(sorted) * a.rows + out, v, a.rows - out, a.rows % 4 == 0);
  }
}

FN void down_block(const bf16* x, const uint* starts, const uint* blocks, const uint* codes, const bf16* scales,
                   const bf16* biases, bf16* z, const GroupedGemmArgs& a, unsigned char* memory, uint thread_index,
                   uint3 group) {
  const ExpertBlock block = expert_block(starts, blocks, group.y, map_tile);
  const uint rows = block.end - block.first;
#define LILY_TILE(n_tiles) down_tile<n_tiles>(x, codes, scales, biases, z, a, block, memory, thread_index, group)
  if (rows > 32) {
    LILY_TILE(8);
  } else if (rows > 16) {
    LILY_TILE(4);
  } else {
    LILY_TILE(2);
  }
#undef LILY_TILE
}

}  // namespace lily::kernels
