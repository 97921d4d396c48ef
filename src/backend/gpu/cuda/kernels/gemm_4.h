// The inner part of products of bf16 rows with matrices of 4-bit codes: a threadgroup of 4 simdgroups makes a tile of up to 128
// tokens by 128 weight rows with mma.m16n8k16. Activations and codes come through threadgroup memory in stages of 64 columns, by
// asynchronous copies; codes become bf16 in registers, where they are the left operand already.
//
// The order in which columns enter a sum is free as long as both operands have the same one. A lane takes 8 columns that lie together
// (one word of codes, 16 bytes of activations) as its share of two multiplications: so both are single loads.
#pragma once

namespace lily::kernels {

constexpr int gemm_threads = 128;
constexpr int gemm_rows = 128;    // weight rows of a tile
constexpr int gemm_columns = 64;  // of a stage
constexpr int gemm_stages = 4;

// Weight rows are the left operand, tokens the right one. The rows of a simdgroup (M_TILES * 16) take places in its part of a tile so
// that the 2 * M_TILES sums that a lane has of a token are rows that follow each other: 8 lanes write one token's rows in one piece.
template <int M_TILES>
FN uint row_of_place(uint place) {
  return place / (M_TILES * 16) * (M_TILES * 16) + place % 8 * (2 * M_TILES) + place / 8 % (2 * M_TILES);
}

template <int tokens>
struct GemmMemory {
  bf16 x[gemm_stages][tokens * gemm_columns];  // [token, 16-byte chunks, halves of odd tokens swapped]
  uint codes[gemm_stages][2 * gemm_rows * 4];  // [half of the columns, place, word]
  uint scales[2][2 * gemm_rows * 2];           // [half, place]: scale, bias, each as a pair of itself
};

// What one thread copies: some chunks of activations, and the weight row of the place with its number.
template <int tokens>
struct GemmSource {
  const bf16* x;
  uint x_rows[tokens / 16];  // first elements of the rows of tokens thread / 8 + 16 i
  const uint* codes;
  const bf16* scales;
  const bf16* biases;
  uint cols;
  uint group_shift;  // log2 of the group size
};

template <int tokens>
FN void set_weights(GemmSource<tokens>& source, const uint* codes, const bf16* scales, const bf16* biases, uint row,
                    uint cols, uint group_size) {
  source.cols = cols;
  source.group_shift = log2_u(group_size);
  source.codes = codes + size_t(row) * (cols / 8);
  source.scales = scales + size_t(row) * (cols >> source.group_shift);
  source.biases = biases + size_t(row) * (cols >> source.group_shift);
}

template <int tokens>
FN void copy_activations(const GemmSource<tokens>& from, GemmMemory<tokens>& memory, uint thread_index, uint step) {
  const uint chunk = thread_index % 8, token = thread_index / 8, column = step * gemm_columns + chunk * 8;
  bf16* to = memory.x[step % gemm_stages] + token * gemm_columns + (chunk ^ (token & 1) * 4) * 8;
  UNROLL
  for (int i = 0; i < tokens / 16; ++i) {
    const bool there = column < from.cols;
    copy_async(to + i * 16 * gemm_columns, from.x + from.x_rows[i] + (there ? column : 0), there);
  }
}

template <int tokens>
FN void copy_codes(const GemmSource<tokens>& from, GemmMemory<tokens>& memory, uint thread_index, uint step) {
  UNROLL
  for (int half = 0; half < 2; ++half) {
    const uint column = step * gemm_columns + half * 32;
    const bool there = column < from.cols;
    copy_async(memory.codes[step % gemm_stages] + (half * gemm_rows + thread_index) * 4,
               from.codes + (there ? column / 8 : 0), there);
  }
}

template <int tokens>
FN uint2 load_scales(const GemmSource<tokens>& from, uint step) {
  uint both[2];
  UNROLL
  for (int half = 0; half < 2; ++half) {
    const uint column = step * gemm_columns + half * 32, group = column >> from.group_shift;
    both[half] = column < from.cols ? bits_of(from.scales[group]) | bits_of(from.biases[group]) << 16 : 0u;
  }
  return make_uint2(both[0], both[1]);
}

template <int tokens>
FN void store_scales(GemmMemory<tokens>& memory, uint thread_index, uint step, uint2 scales) {
  uint* to = memory.scales[step % 2] + thread_index * 2;
  store_uint2(to, make_uint2(pick_bytes(scales.x, 0, 0x1010), pick_bytes(scales.x, 0, 0x3232)));
  store_uint2(to + gemm_rows * 2, make_uint2(pick_bytes(scales.y, 0, 0x1010), pick_bytes(scales.y, 0, 0x3232)));
}

// 8 codes as pairs of bf16 weights. 0x4300 | code is 128 + code; the difference is exact, the weight rounded once.
FN void weights_of(uint (&pairs)[4], uint codes, uint2 scale_and_bias) {
  const uint odd = codes >> 4;
  UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint biased = and_or(pick_bytes(codes, odd, 0x0400 + i * 0x0101), 0x000f000f, 0x43004300);
    pairs[i] = fma_pairs(fma_pairs(biased, 0x3f803f80, 0xc300c300), scale_and_bias.x, scale_and_bias.y);
  }
}

// One stage of a simdgroup: M_TILES * 16 places by N_TILES * 8 tokens.
template <int M_TILES, int N_TILES, int tokens>
FN void multiply_stage(const GemmMemory<tokens>& memory, float (&sums)[M_TILES][N_TILES][4], uint lane,
                       uint first_place, uint first_token, uint step) {
  const uint row = lane / 4, quarter = lane % 4;
  const bf16* x = memory.x[step % gemm_stages] + (first_token + row) * gemm_columns;
  const uint* codes = memory.codes[step % gemm_stages] + (first_place + row) * 4 + quarter;
  const uint* scales = memory.scales[step % 2] + (first_place + row) * 2;
  UNROLL
  for (int half = 0; half < 2; ++half) {
    uint4 right[N_TILES];
    const uint chunk = (half * 4 + quarter) ^ (row & 1) * 4;
    UNROLL
    for (int n = 0; n < N_TILES; ++n) right[n] = load_uint4(x + n * 8 * gemm_columns + chunk * 8);
    UNROLL
    for (int m = 0; m < M_TILES; ++m) {
      const uint low_place = half * gemm_rows + m * 16, high_place = low_place + 8;
      uint low[4], high[4];
      weights_of(low, codes[low_place * 4], load_uint2(scales + low_place * 2));
      weights_of(high, codes[high_place * 4], load_uint2(scales + high_place * 2));
      const uint first[4] = {low[0], high[0], low[1], high[1]}, second[4] = {low[2], high[2], low[3], high[3]};
      UNROLL
      for (int n = 0; n < N_TILES; ++n) {
        const uint pair[2] = {right[n].x, right[n].y};
        mma(sums[m][n], first, pair);
      }
      UNROLL
      for (int n = 0; n < N_TILES; ++n) {
        const uint pair[2] = {right[n].z, right[n].w};
        mma(sums[m][n], second, pair);
      }
    }
  }
}

// The whole sum. The codes of the first stages are on their way already (start_codes).
template <int tokens>
FN void start_codes(const GemmSource<tokens>& from, GemmMemory<tokens>& memory, uint thread_index) {
  for (uint step = 0; step < gemm_stages - 1; ++step) copy_codes(from, memory, thread_index, step);
}

template <int M_TILES, int N_TILES, int tokens>
FN void multiply(const GemmSource<tokens>& from, GemmMemory<tokens>& memory, float (&sums)[M_TILES][N_TILES][4],
                 uint thread_index, uint first_place, uint first_token) {
  const uint steps = (from.cols + gemm_columns - 1) / gemm_columns;
  for (uint step = 0; step < gemm_stages - 1; ++step) {
    copy_activations(from, memory, thread_index, step);
    copies_commit();
  }
  store_scales(memory, thread_index, 0, load_scales(from, 0));
  uint2 scales = load_scales(from, 1);
  UNROLL
  for (int m = 0; m < M_TILES; ++m) {
    UNROLL
    for (int n = 0; n < N_TILES; ++n) {
      UNROLL
      for (int i = 0; i < 4; ++i) sums[m][n][i] = 0;
    }
  }
  for (uint step = 0; step < steps; ++step) {
    copies_wait<gemm_stages - 2>();
    threadgroup_sync();  // this stage is there for all, and the one before it read by all
    copy_codes(from, memory, thread_index, step + gemm_stages - 1);
    copy_activations(from, memory, thread_index, step + gemm_stages - 1);
    copies_commit();
    store_scales(memory, thread_index, step + 1, scales);
    scales = load_scales(from, step + 2);
    multiply_stage<M_TILES, N_TILES>(memory, sums, thread_index % 32, first_place, first_token, step);
  }
}

}  // namespace lily::kernels
