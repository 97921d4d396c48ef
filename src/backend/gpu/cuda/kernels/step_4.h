// One row of activations times 4-bit matrices on tensor cores: decode's arithmetic. Included after words.h.
//
// A warp multiplies chunks of 16 rows by 256 columns, four groups of 64. Codes are the left operand of m16n8k16, as the bf16
// numbers 128 + code, which is exact. The row of activations is the right one: column 2 j holds group j of the chunk, column
// 2 j + 1 what rounding it to bf16 lost, and other groups are zero there; so one accumulator keeps four groups apart, each in
// the lanes that then apply its scale:  sum (code * scale + bias) x = scale * sum (128 + code) x + (bias - 128 scale) * sum x.
#pragma once

namespace lily::kernels {

constexpr uint chunk_columns = 256;
constexpr uint step_rows = 16;  // of a tile: what a block finishes at a time, each warp with columns of its own

// 8 bytes that are read once, with the rest of their line on its way.
FN uint2 stream_uint2(const uint* from) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(from));
  return v;
}

// Codes of rows lane / 4 (low) and lane / 4 + 8 (high): of each group 16, from 16 * (lane % 4) on. Scales of group lane % 4.
struct CodeChunk {
  uint2 low[4], high[4];
  bf16 scale_low, bias_low, scale_high, bias_high;
};

struct CodeRows {  // where two rows of a matrix begin
  const uint *low, *high;
  const bf16 *scale_low, *bias_low, *scale_high, *bias_high;
};

FN CodeRows code_rows(const uint* low, const bf16* scale_low, const bf16* bias_low, uint row_low, const uint* high,
                      const bf16* scale_high, const bf16* bias_high, uint row_high, uint cols, uint shift) {
  const ulong low_at = row_low, high_at = row_high;
  return {low + low_at * (cols / 8),
          high + high_at * (cols / 8),
          scale_low + low_at * (cols >> shift),
          bias_low + low_at * (cols >> shift),
          scale_high + high_at * (cols >> shift),
          bias_high + high_at * (cols >> shift)};
}

// `column`: the chunk's first. shift: log2 of the columns of a group, 6 at least.
FN void load_chunk(CodeChunk& to, const CodeRows& rows, uint column, uint shift, uint lane) {
  const uint word = column / 8 + lane % 4 * 2, group = (column + lane % 4 * 64) >> shift;
#pragma unroll
  for (uint j = 0; j < 4; ++j) {
    to.low[j] = stream_uint2(rows.low + word + j * 8);
    to.high[j] = stream_uint2(rows.high + word + j * 8);
  }
  to.scale_low = rows.scale_low[group], to.bias_low = rows.bias_low[group];
  to.scale_high = rows.scale_high[group], to.bias_high = rows.bias_high[group];
}

// A chunk of the row of activations, as this lane holds it: of group lane / 8 the 16 columns that the codes of lane % 4 meet.
struct RowChunk {
  uint pairs[4][2];  // for each step of a group
  float sum;         // of group lane % 4
};

FN RowChunk row_chunk(const float (&v)[16], uint lane) {
  RowChunk chunk;
  const bool rest = lane / 4 % 2 == 1;
  float part[16], sum = 0;
#pragma unroll
  for (uint i = 0; i < 16; ++i) {
    sum += v[i];
    part[i] = rest ? v[i] - to_float(to_bf16(v[i])) : v[i];
  }
#pragma unroll
  for (uint s = 0; s < 4; ++s) {  // in the order in which nibbles come out of a word
    const uint at = s / 2 * 8 + s % 2 * 2;
    chunk.pairs[s][0] = pack_bf16(part[at], part[at + 4]);
    chunk.pairs[s][1] = pack_bf16(part[at + 1], part[at + 5]);
  }
  sum += simd_shuffle_xor(sum, 1);
  sum += simd_shuffle_xor(sum, 2);
  chunk.sum = simd_shuffle(sum, lane % 4 * 8);
  return chunk;
}

// The columns of x that row_chunk wants.
FN void load_row(float (&v)[16], const float* x, uint column, uint lane) {
  const float* from = x + column + lane / 8 * 64 + lane % 4 * 16;
#pragma unroll
  for (uint i = 0; i < 4; ++i) {
    const float4 part = load_float4(from + i * 4);
    v[i * 4] = part.x, v[i * 4 + 1] = part.y, v[i * 4 + 2] = part.z, v[i * 4 + 3] = part.w;
  }
}

// sums += the two rows' products with this chunk, as far as they are this lane's.
FN void multiply_chunk(float (&sums)[2], const CodeChunk& codes, const RowChunk& row, uint lane) {
  constexpr uint nibbles = 0x000f000fu, offset = 0x43004300u;  // 128 in bf16, twice
  float c[4] = {0, 0, 0, 0}, d[4] = {0, 0, 0, 0};              // two chains
#pragma unroll
  for (uint j = 0; j < 4; ++j) {
    const bool mine = lane / 8 == j;
#pragma unroll
    for (uint s = 0; s < 4; ++s) {
      const uint low = (s < 2 ? codes.low[j].x : codes.low[j].y) >> (s % 2 * 8);
      const uint high = (s < 2 ? codes.high[j].x : codes.high[j].y) >> (s % 2 * 8);
      const uint a[4] = {and_or(low, nibbles, offset), and_or(high, nibbles, offset), and_or(low >> 4, nibbles, offset),
                         and_or(high >> 4, nibbles, offset)};
      const uint b[2] = {mine ? row.pairs[s][0] : 0, mine ? row.pairs[s][1] : 0};
      mma(s % 2 == 0 ? c : d, a, b);
    }
  }
  const float low = to_float(codes.scale_low), high = to_float(codes.scale_high);
  sums[0] += low * (c[0] + c[1] + d[0] + d[1]) + (to_float(codes.bias_low) - 128 * low) * row.sum;
  sums[1] += high * (c[2] + c[3] + d[2] + d[3]) + (to_float(codes.bias_high) - 128 * high) * row.sum;
}

// Each warp's sums of 16 rows to out [warp][step_rows].
FN void leave_sums(float* out, float (&sums)[2], uint warp, uint lane) {
#pragma unroll
  for (uint r = 0; r < 2; ++r) {
    sums[r] += simd_shuffle_xor(sums[r], 1);
    sums[r] += simd_shuffle_xor(sums[r], 2);
    if (lane % 4 == 0) out[warp * step_rows + r * 8 + lane / 4] = sums[r];
    sums[r] = 0;
  }
}

template <uint warps>
FN float sum_of_row(const float* partial, uint row) {
  float sum = 0;
#pragma unroll
  for (uint w = 0; w < warps; ++w) sum += partial[w * step_rows + row];
  return sum;
}

// This warp's chunks of x, times weight where there is a norm. Returns this lane's part of the sum of x squared.
template <uint chunks, bool norm>
FN float load_row_chunks(RowChunk (&row)[chunks], const float* x, const float (*weights)[16], uint cols, uint warp,
                         uint lane) {
  float square = 0;
#pragma unroll
  for (uint i = 0; i < chunks; ++i) {
    const uint column = (warp + i * 8) * chunk_columns;
    if (column >= cols) continue;
    float v[16];
    load_row(v, x, column, lane);
    if (norm) {
#pragma unroll
      for (uint k = 0; k < 16; ++k) {
        square += v[k] * v[k];
        v[k] *= weights[i][k];
      }
    }
    row[i] = row_chunk(v, lane);
  }
  return square;
}

template <uint chunks>
constexpr uint tiles_ahead = chunks == 1 ? 3 : 1;  // of which the codes are on their way

// gemv.h's work: y = W (x * weight) / rms(x), or y += W x. 8 warps; warp w takes chunks w and w + 8. Tiles of 16 rows are dealt
// to the blocks; their codes are asked for some tiles ahead.
template <uint chunks, bool norm>
FN void gemv_4(const float* x, const float* weight, const uint* codes, const bf16* scales, const bf16* biases, float* y,
               const GemvArgs& a, float* partial, float* squares) {
  const uint lane = threadIdx.x % 32, warp = threadIdx.x / 32, tiles = (a.rows + step_rows - 1) / step_rows;
  const uint shift = log2_u(a.group_size);
  constexpr uint ahead = tiles_ahead<chunks>;
  CodeChunk codes_ahead[ahead][chunks];
  const auto load = [&](CodeChunk(&to)[chunks], uint tile) {
    if (tile >= tiles) return;
    const uint row = tile * step_rows + lane / 4;
    const CodeRows rows = code_rows(codes, scales, biases, min_u(row, a.rows - 1), codes, scales, biases,
                                    min_u(row + 8, a.rows - 1), a.cols, shift);
#pragma unroll
    for (uint i = 0; i < chunks; ++i) {
      const uint column = (warp + i * 8) * chunk_columns;
      if (column < a.cols) load_chunk(to[i], rows, column, shift, lane);
    }
  };
#pragma unroll
  for (uint k = 0; k < ahead; ++k) load(codes_ahead[k], blockIdx.x + k * gridDim.x);
  float weights[norm ? chunks : 1][16];
  if (norm) {
#pragma unroll
    for (uint i = 0; i < chunks; ++i) {
      if ((warp + i * 8) * chunk_columns < a.cols) load_row(weights[i], weight, (warp + i * 8) * chunk_columns, lane);
    }
  }
  wait_for_inputs();
  x += blockIdx.y * a.cols;
  y += blockIdx.y * a.rows;
  RowChunk row[chunks];
  float square = load_row_chunks<chunks, norm>(row, x, weights, a.cols, warp, lane);
  if (norm) {
    square = simd_sum(square) * 0.5f;  // every column is in two lanes
    if (lane == 0) squares[warp] = square;
  }
  const bool finishes = threadIdx.x < step_rows;
  float before = 0;  // of y, on its way while the first tile is computed
  if (!norm && finishes && blockIdx.x * step_rows + threadIdx.x < a.rows)
    before = y[blockIdx.x * step_rows + threadIdx.x];
  uint half = 0;
  // Some tiles between two barriers: their chains of products run beside each other. Each buffer has its own place in the
  // unrolled loop: to move one would be to wait for its loads.
  for (uint first = blockIdx.x; first < tiles; first += ahead * gridDim.x) {
    float* mine = partial + half * ahead * 8 * step_rows;
    half = 1 - half;
    float sums[ahead][2] = {};
#pragma unroll
    for (uint k = 0; k < ahead; ++k) {
      if (first + k * gridDim.x >= tiles) break;
#pragma unroll
      for (uint i = 0; i < chunks; ++i) {
        if ((warp + i * 8) * chunk_columns < a.cols) multiply_chunk(sums[k], codes_ahead[k][i], row[i], lane);
      }
      load(codes_ahead[k], first + (k + ahead) * gridDim.x);
    }
#pragma unroll
    for (uint k = 0; k < ahead; ++k) leave_sums(mine + k * 8 * step_rows, sums[k], warp, lane);
    __syncthreads();
    const uint tile = first + threadIdx.x / step_rows * gridDim.x, out = tile * step_rows + threadIdx.x % step_rows;
    if (threadIdx.x >= ahead * step_rows || out >= a.rows) continue;
    const float sum = sum_of_row<8>(mine + threadIdx.x / step_rows * 8 * step_rows, threadIdx.x % step_rows);
    if (norm) {
      float total = 0;
#pragma unroll
      for (uint w = 0; w < 8; ++w) total += squares[w];
      y[out] = sum * rsqrt_f(total / float(a.cols) + a.eps);
    } else {
      y[out] = (first == blockIdx.x ? before : y[out]) + sum;
    }
  }
}

// experts.h's work: 8 rows of gate beside the same 8 rows of up in a tile.
FN void gate_up_4(const float* x, const float* weight, const float* logits, const uint* gate_codes,
                  const bf16* gate_scales, const bf16* gate_biases, const uint* up_codes, const bf16* up_scales,
                  const bf16* up_biases, float* y, const MoeArgs& a, float* partial, float* squares, uint* best,
                  uint* chosen) {
  const uint lane = threadIdx.x % 32, warp = threadIdx.x / 32, shift = log2_u(a.group_size), token = blockIdx.y;
  const uint slots = a.top_k + a.shared_parts, slot_tiles = a.width / 8, tiles = slots * slot_tiles;
  const uint column = warp * chunk_columns;
  const bool works = column < a.hidden;
  float weights[16], v[16];
  if (works) load_row(weights, weight, column, lane);
  wait_for_inputs();
  x += token * a.hidden;
  y += token * slots * a.width;
  if (works) load_row(v, x, column, lane);
  choose_experts<8>(logits + token * a.logits_stride, a.experts, a.top_k, best, chosen, threadIdx.x);
  constexpr uint ahead = tiles_ahead<1>;
  CodeChunk codes_ahead[ahead];
  const auto load = [&](CodeChunk& to, uint tile) {
    if (tile >= tiles || !works) return;
    const uint slot = tile / slot_tiles, expert = slot < a.top_k ? chosen[slot] : a.experts + slot - a.top_k;
    const uint row = expert * a.width + tile % slot_tiles * 8 + lane / 4;
    load_chunk(
        to, code_rows(gate_codes, gate_scales, gate_biases, row, up_codes, up_scales, up_biases, row, a.hidden, shift),
        column, shift, lane);
  };
#pragma unroll
  for (uint k = 0; k < ahead; ++k) load(codes_ahead[k], blockIdx.x + k * gridDim.x);
  RowChunk row;
  float square = 0;
  if (works) {
#pragma unroll
    for (uint k = 0; k < 16; ++k) {
      square += v[k] * v[k];
      v[k] *= weights[k];
    }
    row = row_chunk(v, lane);
  }
  square = simd_sum(square) * 0.5f;  // every column is in two lanes
  if (lane == 0) squares[warp] = square;
  uint half = 0;
  for (uint first = blockIdx.x; first < tiles; first += ahead * gridDim.x) {
    float* mine = partial + half * ahead * 8 * step_rows;
    half = 1 - half;
    float sums[ahead][2] = {};
#pragma unroll
    for (uint k = 0; k < ahead; ++k) {
      if (first + k * gridDim.x >= tiles) break;
      if (works) multiply_chunk(sums[k], codes_ahead[k], row, lane);
      load(codes_ahead[k], first + (k + ahead) * gridDim.x);
    }
#pragma unroll
    for (uint k = 0; k < ahead; ++k) leave_sums(mine + k * 8 * step_rows, sums[k], warp, lane);
    __syncthreads();
    const uint tile = first + threadIdx.x / 8 * gridDim.x;
    if (threadIdx.x >= ahead * 8 || tile >= tiles) continue;
    float total = 0;
#pragma unroll
    for (uint w = 0; w < 8; ++w) total += squares[w];
    const float scale = rsqrt_f(total / float(a.hidden) + a.eps);
    const float* sums_of_tile = mine + threadIdx.x / 8 * 8 * step_rows;
    const float gate = sum_of_row<8>(sums_of_tile, threadIdx.x % 8) * scale;
    const float up = sum_of_row<8>(sums_of_tile, threadIdx.x % 8 + 8) * scale;
    y[tile * 8 + threadIdx.x % 8] = gate / (1.0f + exp_f(-gate)) * up;
  }
}

// x += the down projections of all slots: 16 rows a block, 9 warps, two chunks of the slots' columns each. The logits are
// older than y, so that experts and codes are here before y is.
FN void down_4(const float* y, const float* logits, const uint* codes, const bf16* scales, const bf16* biases, float* x,
               const MoeArgs& a, float* partial, uint* best, uint* chosen, float* weights) {
  constexpr uint warps = 9, chunks = 2;
  const uint lane = threadIdx.x % 32, warp = threadIdx.x / 32, shift = log2_u(a.down_group_size), token = blockIdx.y;
  const uint slots = a.top_k + a.shared_parts, columns = slots * a.width, first_row = blockIdx.x * step_rows;
  logits += token * a.logits_stride;
  choose_experts<warps>(logits, a.experts, a.top_k, best, chosen, threadIdx.x);
  CodeChunk part[chunks];
#pragma unroll
  for (uint i = 0; i < chunks; ++i) {
    const uint column = (warp * chunks + i) * chunk_columns, slot = column / a.width;
    if (column >= columns) continue;
    const uint expert = slot < a.top_k ? chosen[slot] : a.experts + slot - a.top_k;
    const uint row = expert * a.hidden + first_row + lane / 4;
    load_chunk(part[i], code_rows(codes, scales, biases, row, codes, scales, biases, row + 8, a.width, shift),
               column % a.width, shift, lane);
  }
  if (warp == 0) {
    const float share = slot_weight(logits, a.experts, a.top_k, a.shared_parts, chosen, lane);
    if (lane < slots) weights[lane] = share;
  }
  wait_for_inputs();
  y += token * columns;
  x += token * a.hidden + first_row;
  float before = 0;
  if (threadIdx.x < step_rows) before = x[threadIdx.x];
  float v[chunks][16];
#pragma unroll
  for (uint i = 0; i < chunks; ++i) {
    const uint column = (warp * chunks + i) * chunk_columns;
    if (column < columns) load_row(v[i], y, column, lane);
  }
  __syncthreads();  // weights
  float sums[2] = {0, 0};
#pragma unroll
  for (uint i = 0; i < chunks; ++i) {
    const uint column = (warp * chunks + i) * chunk_columns;
    if (column >= columns) continue;
    const float weight = weights[column / a.width];
#pragma unroll
    for (uint k = 0; k < 16; ++k) v[i][k] *= weight;
    multiply_chunk(sums, part[i], row_chunk(v[i], lane), lane);
  }
  leave_sums(partial, sums, warp, lane);
  __syncthreads();
  if (threadIdx.x < step_rows) x[threadIdx.x] = before + sum_of_row<warps>(partial, threadIdx.x);
}

}  // namespace lily::kernels
