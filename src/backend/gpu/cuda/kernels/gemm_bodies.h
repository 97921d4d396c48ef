// The three products of prefill over gemm_4.h: dense, gate and up of the experts, down of the experts.
#pragma once

namespace lily::kernels {

// 8 values of a row of y that follow each other, as many as exist.
FN void put_row_part(bf16* y, const float (&v)[8], uint count, bool aligned) {
  if (count >= 8 && aligned) {
    store_uint4(y,
                make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7])));
    return;
  }
#pragma unroll
  for (uint i = 0; i < 8; ++i) {
    if (i < count) y[i] = to_bf16(v[i]);
  }
}
FN void put_row_part(float* y, const float (&v)[8], uint count, bool aligned, bool add) {
  if (count >= 8 && aligned) {
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      const float4 old = add ? load_float4(y + i) : make_float4(0, 0, 0, 0);
      store_float4(y + i, make_float4(old.x + v[i], old.y + v[i + 1], old.z + v[i + 2], old.w + v[i + 3]));
    }
    return;
  }
#pragma unroll
  for (uint i = 0; i < 8; ++i) {
    if (i < count) y[i] = (add ? y[i] : 0.0f) + v[i];
  }
}

// The 8 neighbouring rows that a lane has of a token: half 0 is token lane / 4 of 16, half 1 that + 8.
template <int M_TILES, int N_TILES>
FN void take_row_part(float (&v)[8], const float (&sums)[M_TILES][N_TILES][4], int m, int block, int half) {
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = sums[m][block * 4 + i / 2][half * 2 + i % 2];
}

// y[token, row] of gemm_64_4.
template <int M_TILES, int N_TILES, int M_WARPS>
FN void dense_tile(const bf16* x, const uint* codes, const bf16* scales, const bf16* biases, void* y, const GemmArgs& a,
                   unsigned char* memory_bytes, uint thread_index, uint3 group) {
  constexpr int tokens = M_WARPS * M_TILES * 16;
  GemmMemory<tokens>& memory = *reinterpret_cast<GemmMemory<tokens>*>(memory_bytes);
  const uint simdgroup = thread_index / 32, lane = thread_index % 32;
  const uint first_token = group.x * tokens, first_row = group.y * gemm_rows;
  GemmSource<tokens> source;
  source.x = x;
#pragma unroll
  for (int i = 0; i < tokens / 16; ++i) {
    source.x_rows[i] = min_u(first_token + thread_index / 8 + 16 * i, a.n - 1) * a.cols;
  }
  const uint row = min_u(first_row + row_of_place(thread_index), a.rows - 1);
  set_weights(source, codes, scales, biases, a.first_row + row, a.cols, a.group_size);
  start_codes(source, memory, thread_index);
  wait_for_inputs();

  const uint warp_token = simdgroup % M_WARPS * (M_TILES * 16), warp_place = simdgroup / M_WARPS * (N_TILES * 8);
  float sums[M_TILES][N_TILES][4];
  multiply<M_TILES, N_TILES>(source, memory, sums, thread_index, warp_token, warp_place);

  const bool aligned = a.y_stride % 8 == 0;
#pragma unroll
  for (int part = 0; part < M_TILES * 2 * (N_TILES / 4); ++part) {
    const int m = part / 2 / (N_TILES / 4), half = part % 2, block = part / 2 % (N_TILES / 4);
    const uint token = first_token + warp_token + m * 16 + half * 8 + lane / 4;
    const uint out = first_row + warp_place + block * 32 + lane % 4 * 8;
    if (token >= a.n || out >= a.rows) continue;
    float v[8];
    take_row_part(v, sums, m, block, half);
    const size_t place = size_t(token) * a.y_stride + out;
    if (a.output == gemm_store_bf16) {
      put_row_part(static_cast<bf16*>(y) + place, v, a.rows - out, aligned);
    } else {
      put_row_part(static_cast<float*>(y) + place, v, a.rows - out, aligned, a.output == gemm_add_f32);
    }
  }
}

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

// y[sorted row, r] = silu(gate) * up, M_TILES * 16 sorted rows by 64 rows of both matrices: of every 32 places the first 16
// (two 8-column blocks of accumulators) are gate's.
template <int M_TILES>
FN void gate_up_tile(const bf16* x, const uint* pairs, const uint* gate_codes, const bf16* gate_scales,
                     const bf16* gate_biases, const uint* up_codes, const bf16* up_scales, const bf16* up_biases,
                     bf16* y, const GroupedGemmArgs& a, const ExpertBlock& block, unsigned char* memory_bytes,
                     uint thread_index, uint3 group) {
  constexpr int tokens = M_TILES * 16;
  GemmMemory<tokens>& memory = *reinterpret_cast<GemmMemory<tokens>*>(memory_bytes);
  const uint simdgroup = thread_index / 32, lane = thread_index % 32, first_row = group.x * 64;
  GemmSource<tokens> source;
  source.x = x;
#pragma unroll
  for (int i = 0; i < tokens / 16; ++i) {
    source.x_rows[i] = pairs[min_u(block.first + thread_index / 8 + 16 * i, block.end - 1)] / a.slots * a.cols;
  }
  const uint place = thread_index % 32;
  const uint row =
      min_u(first_row + thread_index / 32 * 16 + place % 8 / 2 * 4 + place / 8 % 2 * 2 + place % 2, a.rows - 1);
  const bool is_up = place >= 16;
  set_weights(source, is_up ? up_codes : gate_codes, is_up ? up_scales : gate_scales, is_up ? up_biases : gate_biases,
              block.expert * a.rows + row, a.cols, a.group_size);
  start_codes(source, memory, thread_index);

  float sums[M_TILES][4][4];
  multiply<M_TILES, 4>(source, memory, sums, thread_index, 0, simdgroup * 32);

  const uint out = first_row + simdgroup * 16 + lane % 4 * 4;
#pragma unroll
  for (int part = 0; part < M_TILES * 2; ++part) {
    const int m = part / 2, half = part % 2;
    const uint sorted = block.first + m * 16 + half * 8 + lane / 4;
    if (sorted >= block.end || out >= a.rows) continue;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float gate = sums[m][i / 2][half * 2 + i % 2], up = sums[m][2 + i / 2][half * 2 + i % 2];
      v[i] = gate / (1.0f + exp_f(-gate)) * up;
    }
    bf16* to = y + size_t(sorted) * a.rows + out;
    if (out + 4 <= a.rows && a.rows % 4 == 0) {
      store_uint2(to, make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3])));
    } else {
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
        if (out + i < a.rows) to[i] = to_bf16(v[i]);
      }
    }
  }
}

// z[sorted row, r], M_TILES * 16 sorted rows by 128 rows of the matrix.
template <int M_TILES>
FN void down_tile(const bf16* x, const uint* codes, const bf16* scales, const bf16* biases, bf16* z,
                  const GroupedGemmArgs& a, const ExpertBlock& block, unsigned char* memory_bytes, uint thread_index,
                  uint3 group) {
  constexpr int tokens = M_TILES * 16;
  GemmMemory<tokens>& memory = *reinterpret_cast<GemmMemory<tokens>*>(memory_bytes);
  const uint simdgroup = thread_index / 32, lane = thread_index % 32, first_row = group.x * gemm_rows;
  GemmSource<tokens> source;
  source.x = x;
#pragma unroll
  for (int i = 0; i < tokens / 16; ++i) {
    source.x_rows[i] = min_u(block.first + thread_index / 8 + 16 * i, block.end - 1) * a.cols;
  }
  const uint row = min_u(first_row + row_of_place(thread_index), a.rows - 1);
  set_weights(source, codes, scales, biases, block.expert * a.rows + row, a.cols, a.group_size);
  start_codes(source, memory, thread_index);

  float sums[M_TILES][4][4];
  multiply<M_TILES, 4>(source, memory, sums, thread_index, 0, simdgroup * 32);

  const uint out = first_row + simdgroup * 32 + lane % 4 * 8;
#pragma unroll
  for (int part = 0; part < M_TILES * 2; ++part) {
    const int m = part / 2, half = part % 2;
    const uint sorted = block.first + m * 16 + half * 8 + lane / 4;
    if (sorted >= block.end || out >= a.rows) continue;
    float v[8];
    take_row_part(v, sums, m, 0, half);
    put_row_part(z + size_t(sorted) * a.rows + out, v, a.rows - out, a.rows % 8 == 0);
  }
}

}  // namespace lily::kernels
