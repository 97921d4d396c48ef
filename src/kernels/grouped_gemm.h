// The experts of many tokens, for prefill: one product for each block of rows that one expert has (kernels/moe.h groups them).
#pragma once

#include "kernels/gemm.h"

namespace lily::kernels {

// A block of the map, or none: blocks[0] counts them, then (group, first sorted row) of each.
struct RowBlock {
  uint group, first, end;  // sorted rows
};

FN RowBlock row_block(device const uint* starts, device const uint* blocks, uint index, uint tile_rows) {
  RowBlock block;
  block.group = blocks[1 + 2 * index];
  block.first = blocks[2 + 2 * index];
  block.end = min_u(block.first + tile_rows, starts[block.group + 1]);
  return block;
}

// y[sorted row, W] = silu(gate . x) * (up . x): 32 columns of both matrices side by side in one tile.
template <uint bits, uint tile_rows>
FN void moe_gate_up(device const bf16* x, device const uint* pairs, device const uint* starts,
                    device const uint* blocks, device const uint* gate_codes, device const bf16* gate_scales,
                    device const bf16* gate_biases, device const uint* up_codes, device const bf16* up_scales,
                    device const bf16* up_biases, device bf16* y, GroupedGemmArgs a, threadgroup uint* memory,
                    threadgroup uint* rows, uint3 group, uint thread_index) {
  wait_for_inputs();
  if (group.y >= blocks[0]) return;  // the whole threadgroup: the grid is for the most blocks there can be
  const RowBlock block = row_block(starts, blocks, group.y, tile_rows);
  if (thread_index < tile_rows) {
    const uint row = block.first + thread_index;
    rows[thread_index] = row < block.end ? pairs[row] / a.slots : none_row;
  }
  threadgroup_sync();
  const uint half_columns = gemm_columns / 2, column = thread_index / 2 % half_columns;
  const bool is_up = thread_index / 2 >= half_columns;
  const uint left = group.x * half_columns, matrix_row = block.group * a.rows + left + column;
  gemm_tile<bits, tile_rows>(memory, x, rows, is_up ? up_codes : gate_codes, is_up ? up_scales : gate_scales,
                             is_up ? up_biases : gate_biases, matrix_row, a.cols, a.group_size, thread_index);
  threadgroup const float* out = (threadgroup const float*)memory;
  for (uint i = thread_index; i < tile_rows * half_columns; i += 128) {
    const uint r = i / half_columns, c = i % half_columns;
    if (block.first + r >= block.end) continue;
    const float gate = out[r * gemm_out_ld + c], up = out[r * gemm_out_ld + half_columns + c];
    y[(block.first + r) * a.rows + left + c] = to_bf16(gate / (1.0f + exp_f(-gate)) * up);
  }
}

// z[sorted row, H] = down . y
template <uint bits, uint tile_rows>
FN void moe_down(device const bf16* y, device const uint* starts, device const uint* blocks, device const uint* codes,
                 device const bf16* scales, device const bf16* biases, device bf16* z, GroupedGemmArgs a,
                 threadgroup uint* memory, threadgroup uint* rows, uint3 group, uint thread_index) {
  wait_for_inputs();
  if (group.y >= blocks[0]) return;
  const RowBlock block = row_block(starts, blocks, group.y, tile_rows);
  if (thread_index < tile_rows) {
    const uint row = block.first + thread_index;
    rows[thread_index] = row < block.end ? row : none_row;
  }
  threadgroup_sync();
  const uint left = group.x * gemm_columns, matrix_row = block.group * a.rows + left + thread_index / 2;
  gemm_tile<bits, tile_rows>(memory, y, rows, codes, scales, biases, matrix_row, a.cols, a.group_size, thread_index);
  threadgroup const float* out = (threadgroup const float*)memory;
  for (uint i = thread_index; i < tile_rows * gemm_columns; i += 128) {
    const uint r = i / gemm_columns, c = i % gemm_columns;
    if (block.first + r < block.end) z[(block.first + r) * a.rows + left + c] = to_bf16(out[r * gemm_out_ld + c]);
  }
}

#define LILY_GROUPED_GEMM(tile_rows, bits)                                                                            \
  KERNEL(128, moe_gate_up_##tile_rows##_##bits, IN(0, bf16, x), IN(1, uint, pairs), IN(2, uint, starts),              \
         IN(3, uint, blocks), WEIGHTS(4, uint, gate_codes), WEIGHTS(5, bf16, gate_scales),                            \
         WEIGHTS(6, bf16, gate_biases), WEIGHTS(7, uint, up_codes), WEIGHTS(8, bf16, up_scales),                      \
         WEIGHTS(9, bf16, up_biases), OUT(10, bf16, y), ARGS(11, GroupedGemmArgs, a)) {                               \
    THREAD_IDS                                                                                                        \
    SHARED(uint, memory, GemmCut<tile_rows>::words);                                                                  \
    SHARED(uint, rows, tile_rows);                                                                                    \
    moe_gate_up<bits, tile_rows>(x, pairs, starts, blocks, gate_codes, gate_scales, gate_biases, up_codes, up_scales, \
                                 up_biases, y, a, memory, rows, group, thread_index);                                 \
  }                                                                                                                   \
  KERNEL(128, moe_down_##tile_rows##_##bits, IN(0, bf16, y), IN(1, uint, starts), IN(2, uint, blocks),                \
         WEIGHTS(3, uint, codes), WEIGHTS(4, bf16, scales), WEIGHTS(5, bf16, biases), OUT(6, bf16, z),                \
         ARGS(7, GroupedGemmArgs, a)) {                                                                               \
    THREAD_IDS                                                                                                        \
    SHARED(uint, memory, GemmCut<tile_rows>::words);                                                                  \
    SHARED(uint, rows, tile_rows);                                                                                    \
    moe_down<bits, tile_rows>(y, starts, blocks, codes, scales, biases, z, a, memory, rows, group, thread_index);     \
  }
LILY_GROUPED_GEMM(32, 2)
LILY_GROUPED_GEMM(32, 3)
LILY_GROUPED_GEMM(32, 4)
LILY_GROUPED_GEMM(32, 5)
LILY_GROUPED_GEMM(32, 6)
LILY_GROUPED_GEMM(32, 8)
LILY_GROUPED_GEMM(32, 16)
LILY_GROUPED_GEMM(16, 4)
LILY_GROUPED_GEMM(16, 8)
LILY_GROUPED_GEMM(16, 16)
LILY_GROUPED_GEMM(64, 4)
LILY_GROUPED_GEMM(64, 8)
LILY_GROUPED_GEMM(64, 16)
#undef LILY_GROUPED_GEMM

}  // namespace lily::kernels
