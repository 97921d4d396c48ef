// Rows of activations times a matrix whose weights become bf16 tile by tile, in threadgroup memory: prefill's work. A
// threadgroup computes `tile_rows` rows of 64 columns; 128 threads are 4 simdgroups side by side.
#pragma once

#include "kernels/unit_rows.h"

namespace lily::kernels {

constexpr uint gemm_columns = 64;  // of the result, of a threadgroup
constexpr uint gemm_depth = 64;    // columns of x and of W between two barriers
constexpr uint gemm_ld = 72;  // elements of a row in threadgroup memory: 64 and a pad that spreads rows over the banks
constexpr uint gemm_out_ld = 68;  // the same for float32 results

// How the simdgroups cut a tile: 2 x 2 of [32, 32], 1 x 4 of [tile_rows, 16].
template <uint tile_rows>
struct GemmCut {
  static constexpr uint rows = tile_rows == 64 ? 32 : tile_rows;  // of a simdgroup
  static constexpr uint columns = tile_rows == 64 ? 32 : 16;
  static constexpr uint down = tile_rows / rows;  // simdgroups one below the other
  static constexpr uint a_words = tile_rows * gemm_ld / 2;
  static constexpr uint b_words = gemm_columns * gemm_ld / 2;
  static constexpr uint out_words = tile_rows * gemm_out_ld;
  static constexpr uint words = a_words + b_words > out_words ? a_words + b_words : out_words;  // of threadgroup memory
};

// Code i of a unit as a number.
template <uint bits>
FN float code_value(thread const uint* words, uint i) {
  const uint word = i * bits / 32, low = i * bits % 32;
  uint v = words[word] >> low;
  if (low + bits > 32) v |= words[word + 1] << (32 - low);
  return float(v & ((1u << bits) - 1));
}

// The 32 weights of a unit, as bf16, to threadgroup memory aligned to 16 bytes.
template <uint bits>
FN void store_weights(threadgroup bf16* to, thread const UnitRows<bits, 1, 1>& unit) {
  const float scale = to_float(unit.scale[0]), bias = to_float(unit.bias[0]);
  UNROLL
  for (uint i = 0; i < 4; ++i) {
    uint packed[4];
    UNROLL
    for (uint j = 0; j < 4; ++j) {
      const uint at = i * 8 + j * 2;
      if (bits == 16) {
        packed[j] = unit.words[at / 2];
      } else {
        packed[j] = pack_bf16(code_value<bits>(unit.words, at) * scale + bias,
                              code_value<bits>(unit.words, at + 1) * scale + bias);
      }
    }
    uint4 v;
    v.x = packed[0], v.y = packed[1], v.z = packed[2], v.w = packed[3];
    store_uint4(to + i * 8, v);
  }
}

// The next piece of x in registers: tile_rows x 64 columns, 16 bytes at a time. rows[r]: the row of x for row r of the tile,
// none_row: zeros.
constexpr uint none_row = 0xffffffffu;
template <uint tile_rows>
struct GemmPiece {
  uint4 part[tile_rows / 16];
};

template <uint tile_rows>
FN void load_piece(thread GemmPiece<tile_rows>& piece, device const bf16* x, threadgroup const uint* rows, uint cols,
                   uint first, uint thread_index) {
  UNROLL
  for (uint i = 0; i < tile_rows / 16; ++i) {
    const uint row = rows[i * 16 + thread_index / 8], column = first + thread_index % 8 * 8;
    uint4 v;
    v.x = v.y = v.z = v.w = 0;
    if (row != none_row && column < cols) v = load_uint4(x + row * cols + column);
    piece.part[i] = v;
  }
}

template <uint tile_rows>
FN void store_piece(threadgroup bf16* a, thread const GemmPiece<tile_rows>& piece, uint thread_index) {
  UNROLL
  for (uint i = 0; i < tile_rows / 16; ++i) {
    store_uint4(a + (i * 16 + thread_index / 8) * gemm_ld + thread_index % 8 * 8, piece.part[i]);
  }
}

// A thread's unit of W: row thread_index / 2 of the 64, first or second half of the 64 columns. `row` is that row of the
// matrix, none_row: zeros.
template <uint bits>
FN void load_weights(thread UnitRows<bits, 1, 1>& unit, device const uint* codes, device const bf16* scales,
                     device const bf16* biases, uint row, uint cols, uint first, uint group_size, uint thread_index) {
  const uint place = first / unit_columns + thread_index % 2, units = cols / unit_columns;
  if (row != none_row && place < units) {
    load_unit(unit, 0, codes, scales, biases, row * units + place, group_shift(group_size));
  } else {
    clear_unit(unit, 0);
  }
}

// memory[r * gemm_out_ld + c] = x[rows[r]] . W[row of c] in float32, for the tile. `matrix_row`: of W for this thread's unit.
// `memory` is 16-byte aligned and has GemmCut::words; all threads have passed a barrier after writing `rows`.
template <uint bits, uint tile_rows>
FN void gemm_tile(threadgroup uint* memory, device const bf16* x, threadgroup const uint* rows,
                  device const uint* codes, device const bf16* scales, device const bf16* biases, uint matrix_row,
                  uint cols, uint group_size, uint thread_index) {
  typedef GemmCut<tile_rows> Cut;
  threadgroup bf16* a = (threadgroup bf16*)memory;
  threadgroup bf16* b = (threadgroup bf16*)(memory + Cut::a_words);
  const uint simdgroup = thread_index / 32;
  const uint top = simdgroup % Cut::down * Cut::rows, left = simdgroup / Cut::down * Cut::columns;
  Tile<Cut::rows, Cut::columns> tile;
  tile_zero(tile);
  GemmPiece<tile_rows> piece;
  UnitRows<bits, 1, 1> unit;
  load_piece<tile_rows>(piece, x, rows, cols, 0, thread_index);
  load_weights<bits>(unit, codes, scales, biases, matrix_row, cols, 0, group_size, thread_index);
  for (uint first = 0; first < cols; first += gemm_depth) {
    if (first > 0) threadgroup_sync();  // the piece before has been multiplied
    store_piece<tile_rows>(a, piece, thread_index);
    store_weights<bits>(b + thread_index / 2 * gemm_ld + thread_index % 2 * unit_columns, unit);
    if (first + gemm_depth < cols) {  // on its way while this one is multiplied
      load_piece<tile_rows>(piece, x, rows, cols, first + gemm_depth, thread_index);
      load_weights<bits>(unit, codes, scales, biases, matrix_row, cols, first + gemm_depth, group_size, thread_index);
    }
    threadgroup_sync();
    tile_mma<Cut::rows, Cut::columns, gemm_depth>(tile, a + top * gemm_ld, gemm_ld, b + left * gemm_ld, gemm_ld);
  }
  threadgroup_sync();  // a and b become the result
  tile_store(tile, (threadgroup float*)memory + top * gemm_out_ld + left, gemm_out_ld);
  threadgroup_sync();
}

template <uint bits, uint tile_rows>
FN void gemm(device const bf16* x, device const uint* codes, device const bf16* scales, device const bf16* biases,
             device void* y, GemmArgs a, threadgroup uint* memory, threadgroup uint* rows, uint3 group,
             uint thread_index) {
  const uint left = group.x * gemm_columns, top = group.y * tile_rows;
  if (thread_index < tile_rows) rows[thread_index] = top + thread_index < a.n ? top + thread_index : none_row;
  wait_for_inputs();
  threadgroup_sync();
  const uint column = left + thread_index / 2;
  gemm_tile<bits, tile_rows>(memory, x, rows, codes, scales, biases, column < a.rows ? a.first_row + column : none_row,
                             a.cols, a.group_size, thread_index);
  threadgroup const float* out = (threadgroup const float*)memory;
  for (uint i = thread_index; i < tile_rows * gemm_columns; i += 128) {
    const uint r = i / gemm_columns, c = i % gemm_columns;
    if (top + r >= a.n || left + c >= a.rows) continue;
    const float value = out[r * gemm_out_ld + c];
    const uint at = (top + r) * a.y_stride + left + c;
    if (a.output == gemm_store_bf16) {
      ((device bf16*)y)[at] = to_bf16(value);
    } else if (a.output == gemm_store_f32) {
      ((device float*)y)[at] = value;
    } else {
      ((device float*)y)[at] += value;
    }
  }
}

#define LILY_GEMM(tile_rows, bits)                                                                          \
  KERNEL(128, gemm_##tile_rows##_##bits, IN(0, bf16, x), WEIGHTS(1, uint, codes), WEIGHTS(2, bf16, scales), \
         WEIGHTS(3, bf16, biases), INOUT(4, uint, y), ARGS(5, GemmArgs, a)) {                               \
    THREAD_IDS                                                                                              \
    SHARED(uint, memory, GemmCut<tile_rows>::words);                                                        \
    SHARED(uint, rows, tile_rows);                                                                          \
    gemm<bits, tile_rows>(x, codes, scales, biases, y, a, memory, rows, group, thread_index);               \
  }
LILY_GEMM(32, 2)
LILY_GEMM(32, 3)
LILY_GEMM(32, 4)
LILY_GEMM(32, 5)
LILY_GEMM(32, 6)
LILY_GEMM(32, 8)
LILY_GEMM(32, 16)
LILY_GEMM(16, 4)
LILY_GEMM(16, 8)
LILY_GEMM(16, 16)
LILY_GEMM(64, 4)
LILY_GEMM(64, 8)
LILY_GEMM(64, 16)
#undef LILY_GEMM

}  // namespace lily::kernels
