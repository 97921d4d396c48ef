// Every kernel: its name, threads a threadgroup, arguments, and what it does with its buffers in their order (r reads, w writes
// every element that is later read, u updates, e reads
// early: before wait_for_inputs(), so that the kernel just before must not have written it). The planner finds dependencies by it. `*_B` exists for each width of codes, and
// `*_T_B` for 32 rows of a tile and each width, and for 16 and 64 rows and widths 4, 8 and 16.
//
// Buffers (see args.h for the letters), and the grid of threadgroups:
//
// embed_B            tokens int [n], codes, scales, biases, x f32 [n, H]                                  grid (1, n)
// rms_norm           x f32 [n, cols], weight f32 [cols], y bf16 [n, cols]                                 grid (n)
// norm_gemv_B        x f32 [n, cols], weight f32 [cols], codes, scales, biases, y f32 [n, rows]           grid (rows / (8 simd_rows passes), n)
// gemv_add_B         x f32 [n, cols], codes, scales, biases, y f32 [n, rows] (+=)                         grid (rows / (8 simd_rows passes), n)
// gemm_T_B           x bf16 [n, cols], codes, scales, biases, y                                           grid (rows / 64, n / T)
//
// delta_step         projections f32 (a row), conv weights f32 [taps, channels], a_log, dt_bias f32 [value_heads],
//                    norm f32 [V], history in, history out f32 [taps - 1, channels] (oldest first), state in, state out f32
//                    [value_heads, V, K], y f32 [value_heads, V]: normed and gated                        grid (value_heads)
// delta_prepare      projections bf16 [n, stride], gates f32 [n, gate_stride], conv weights, a_log, dt_bias, history in, history
//                    out, qkv bf16 [n, channels]: convolved, q and k normalised, q scaled; decay f32 [n, value_heads],
//                    beta f32 [n, value_heads]                                  grid (channels / 128, n / 16)
// delta_scan         qkv bf16, decay, beta, state in, state out, o f32 [n, value_heads, V]  grid (V / 32, value_heads)
// delta_norm         o f32, projections bf16 (z), norm, y bf16 [n, value_heads * V]                  grid (value_heads, n / 16)
//
// attend_step        projections f32 (a row), q_norm, k_norm f32 [D], rope f32 [2, rope_low, rotary / 2, (cos, sin)], step,
//                    blocks uint, KV pool bf16, y f32 [heads, D] gated (splits == 1), partial f32
//                    [heads, splits, D + 2] (sum, max, total)                                     grid (splits, kv_heads)
// attend_merge       projections f32, partial f32, y f32 [heads, D] gated                              grid (heads, 4)
// attention_prepare  projections bf16 [n, stride], q_norm, k_norm, rope, step, blocks, KV pool, q bf16 [n, heads, D] scaled
//                                                                                        grid (n * (heads + kv_heads) / 8)
// attend_chunk       q bf16, projections bf16 (gates), step, blocks, KV pool, y bf16 [n, heads * D]   grid (n / 4, kv_heads)
//
// experts_gate_up_B  x f32 [n, H], weight f32 [H], logits f32 [n, stride], gate codes, scales, biases, up codes, scales, biases,
//                    y f32 [n, S, W]                                                              grid (W / 16, S, n)
// experts_down_B     y f32 [n, S, W], logits f32 [n, stride], codes, scales, biases, x f32 [n, H] (+=)  grid (H / 16, n)
// route              logits f32 [n, stride], choices uint [n, S], weights f32 [n, S]                      grid (n)
// group_count        choices, counts uint [groups]                                                        grid (groups)
// group_map          counts, starts uint [groups + 1], blocks: uint [1 + 2 * max blocks]: their number, then (group, first
//                    row) of each                                                                         grid (1)
// group_scatter      choices, starts, pairs uint [n * S] (sorted row -> pair), places uint [n * S] (pair -> sorted row)
//                                                                                                         grid (groups)
// moe_gate_up_T_B    x bf16 [n, H], pairs, starts, blocks, gate ..., up ..., y bf16 [n * S, W] by sorted row
//                                                                              grid (W / 32, max blocks)
// moe_down_T_B       y bf16 [n * S, W], starts, blocks, codes, scales, biases, z bf16 [n * S, H] by sorted row
//                                                                              grid (H / 64, max blocks)
// moe_combine        z, places, weights, x f32 [n, H] (+=)                                                grid (n)
//
// measure_tiles      out f32 [threadgroups]                                                            any grid
//
// sample_parts       logits f32 [vocab], candidates f32 [parts, candidates, (logit, id as bits)]         grid (parts)
// sample_pick        candidates, step (u): position + 1 and the token, token uint [1] (w)                 grid (1)
//
// Plain forms for ablation (kernels/unfused.h, kernels/unfused_attention.h); `after` is not read, it only orders:
// dequantize_B       codes, scales, biases, after, y bf16 [units, 32]                                     grid (units / 256)
// expert_product_B   x f32 [n, cols] or [n, S, cols], choices, codes, scales, biases, y f32 [n, S, rows]  grid (rows / 16, S, n)
// rms_norm_float     x f32 [n, cols], weight f32 [cols], y f32 [n, cols]                                  grid (n)
// silu_multiply      gate f32 [count], up f32 [count], y f32 [count]                                      grid (count / 256)
// weighted_sum       z f32 [n, S, H], weights f32 [n, S], x f32 [n, H] (+=)                               grid (H / 256, n)
// delta_update       delta_step's without the norm, o f32 [value_heads, V]: raw                           grid (value_heads)
// norm_gate          o f32 [value_heads, V], projections f32 (a row), norm f32 [V], y f32 [value_heads, V]  grid (value_heads)
// prepare_step       projections f32 (a row), q_norm, k_norm, rope, step, blocks, KV pool, q f32 [heads, D] scaled
//                                                                                              grid ((heads + kv_heads) / 8)
// attend_prepared    q f32, projections, step, blocks, KV pool, y, partial: attend_step's                 grid (splits, kv_heads)
// attend_alone       attend_step's                                                                        grid (splits, heads)
// attend_strided     attend_step's                                                                        grid (splits, kv_heads)
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "kernels/args.h"

namespace lily::kernels {

struct KernelInfo {
  std::string_view name;
  unsigned threads;           // of a threadgroup
  std::string_view accesses;  // of its buffers
  size_t args_bytes;
};

// All of them; the index is the kernel's number on every device.
std::span<const KernelInfo> catalog();

// The number of a kernel; names are fixed in the sources, so an unknown one is our bug.
int find_kernel(std::string_view name);

}  // namespace lily::kernels
