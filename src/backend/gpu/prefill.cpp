// Prefill: matrix products over the rows of a chunk, weights dequantised tile by tile on the chip.
#include <algorithm>

#include "backend/gpu/schedule.h"

namespace lily::gpu {
namespace {

// Rows of a tile: as few as hold the rows there are, since what is left over is computed in vain. Widths of codes that are
// rare have one size.
uint32_t tile_rows(uint32_t rows, const GpuMatrix& m) {
  if (m.bits != 4 && m.bits != 8 && m.bits != 16) return 32;
  return rows <= 16 ? 16 : rows <= 48 ? 32 : 64;
}

std::string for_tile(const std::string& kernel, uint32_t tile, const GpuMatrix& m) {
  return for_bits(kernel + "_" + std::to_string(tile), m);
}

}  // namespace

void Schedule::embed(Planner& planner, const Chunk& chunk) const {
  const GpuMatrix& m = weights_.embed;
  planner.add(for_bits("embed", m), {1, chunk.n, 1},
              {external(chunk.tokens), external(m.codes), external(m.scales), external(m.biases), external(chunk.x)},
              kernels::EmbedArgs{chunk.n, hidden(), m.group_size, m.rows});
}

void Schedule::gemm(Planner& planner, const GpuMatrix& m, uint32_t first_row, uint32_t rows, uint32_t n,
                    const Operand& x, const Operand& y, uint32_t stride, kernels::GemmOutput output) const {
  const uint32_t tile = tile_rows(n, m);
  planner.add(for_tile("gemm", tile, m), {ceil_div(rows, 64), ceil_div(n, tile), 1},
              {x, external(m.codes), external(m.scales), external(m.biases), y},
              kernels::GemmArgs{n, rows, first_row, m.cols, m.group_size, stride, output});
}

void Schedule::prefill_layer(Planner& planner, const Chunk& chunk, int layer) const {
  const GpuLayer& w = weights_.layers[layer];
  const Operand normed = planner.temporary(size_t{chunk.n} * hidden() * 2);
  rms_norm(planner, chunk.x, w.input_norm, chunk.n, normed);
  if (config_.layers[layer] == LayerKind::full_attention) {
    prefill_full_attention(planner, chunk, layer, normed);
  } else {
    prefill_linear_attention(planner, chunk, layer, normed);
  }
  const Operand normed_again = planner.temporary(size_t{chunk.n} * hidden() * 2);
  rms_norm(planner, chunk.x, w.post_attention_norm, chunk.n, normed_again);
  prefill_feed_forward(planner, chunk, layer, normed_again);
}

void Schedule::prefill_linear_attention(Planner& planner, const Chunk& chunk, int layer, const Operand& normed) const {
  const GpuLayer& w = weights_.layers[layer];
  const size_t n = chunk.n;
  const auto channels = static_cast<uint32_t>(config_.conv_channels());
  const auto value_size = static_cast<uint32_t>(config_.linear_value_size());
  const auto heads = static_cast<uint32_t>(config_.linear_value_heads);
  const uint32_t wide = channels + value_size;
  const kernels::DeltaArgs args = delta_args(chunk.n, wide);
  const int index = linear_index(layer);
  const auto history = [&](const Buffer& memory) { return external(states_.history(memory, index)); };
  const auto recurrent = [&](const Buffer& memory) { return external(states_.recurrent(memory, index)); };

  const Operand projections = planner.temporary(n * wide * 2), gates = planner.temporary(n * 2 * heads * 4);
  gemm(planner, w.in, 0, wide, chunk.n, normed, projections, wide, kernels::gemm_store_bf16);
  gemm(planner, w.in, wide, 2 * heads, chunk.n, normed, gates, 2 * heads, kernels::gemm_store_f32);

  const Operand qkv = planner.temporary(n * channels * 2);
  const Operand decay = planner.temporary(n * heads * 4), beta = planner.temporary(n * heads * 4);
  planner.add("delta_prepare", {channels / kernels::linear_dim, ceil_div(chunk.n, 16), 1},
              {projections, gates, external(w.conv), external(w.a_log), external(w.dt_bias),
               history(chunk.state.before()), history(chunk.state.after()), qkv, decay, beta},
              args);
  const Operand read = planner.temporary(n * value_size * 4);
  planner.add("delta_scan", {kernels::linear_dim / 32, heads, 1},
              {qkv, decay, beta, recurrent(chunk.state.before()), recurrent(chunk.state.after()), read}, args);
  const Operand out = planner.temporary(n * value_size * 2);
  planner.add("delta_norm", {heads, ceil_div(chunk.n, 16), 1}, {read, projections, external(w.norm), out}, args);
  gemm(planner, w.out, 0, w.out.rows, chunk.n, out, external(chunk.x), hidden(), kernels::gemm_add_f32);
}

void Schedule::prefill_full_attention(Planner& planner, const Chunk& chunk, int layer, const Operand& normed) const {
  const GpuLayer& w = weights_.layers[layer];
  const size_t n = chunk.n;
  const uint32_t stride = w.in.rows;
  const kernels::AttentionArgs args = attention_args(chunk.n, stride, layer);
  const Operand projections = planner.temporary(n * stride * 2);
  gemm(planner, w.in, 0, stride, chunk.n, normed, projections, stride, kernels::gemm_store_bf16);
  const Operand queries = planner.temporary(n * config_.query_size() * 2);
  const Operand pool = unordered(states_.pool.view());  // the chunk reads what the queries' kernel wrote
  planner.add("attention_prepare", {ceil_div(chunk.n * (args.heads + args.kv_heads), 8), 1, 1},
              {projections, external(w.q_norm), external(w.k_norm), external(weights_.rope),
               external(chunk.state.step()), external(chunk.state.blocks()), pool, queries},
              args);
  const Operand out = planner.temporary(n * config_.query_size() * 2);
  planner.add("attend_chunk", {ceil_div(chunk.n, 4), args.kv_heads, 1},
              {queries, projections, external(chunk.state.step()), external(chunk.state.blocks()), pool, out}, args);
  gemm(planner, w.out, 0, w.out.rows, chunk.n, out, external(chunk.x), hidden(), kernels::gemm_add_f32);
}

void Schedule::prefill_feed_forward(Planner& planner, const Chunk& chunk, int layer, const Operand& normed) const {
  const GpuLayer& w = weights_.layers[layer];
  const uint32_t n = chunk.n, slot_count = slots(), pairs = n * slot_count;
  const uint32_t groups = static_cast<uint32_t>(config_.num_experts) + weights_.shared_parts;
  const kernels::MoeArgs args = moe_args(n, w);

  const Operand logits = planner.temporary(std::max<size_t>(16, size_t{n} * w.router.rows * 4));
  if (config_.is_moe()) {
    gemm(planner, w.router, 0, w.router.rows, n, normed, logits, w.router.rows, kernels::gemm_store_f32);
  }
  const Operand choices = planner.temporary(size_t{pairs} * 4), weights = planner.temporary(size_t{pairs} * 4);
  planner.add("route", {n, 1, 1}, {logits, choices, weights}, args);

  const uint32_t tile = tile_rows(pairs / groups, w.gate);
  const uint32_t max_blocks = std::min(pairs, pairs / tile + std::min(groups, pairs));
  const kernels::GroupArgs group_args{n, slot_count, groups, tile};
  const Operand counts = planner.temporary(groups * 4), starts = planner.temporary((groups + 1) * 4);
  const Operand blocks = planner.temporary((1 + 2 * size_t{max_blocks}) * 4);
  const Operand sorted = planner.temporary(size_t{pairs} * 4), places = planner.temporary(size_t{pairs} * 4);
  planner.add("group_count", {groups, 1, 1}, {choices, counts}, group_args);
  planner.add("group_map", {1, 1, 1}, {counts, starts, blocks}, group_args);
  planner.add("group_scatter", {groups, 1, 1}, {choices, starts, sorted, places}, group_args);

  const Operand activation = planner.temporary(size_t{pairs} * args.width * 2);
  planner.add(for_tile("moe_gate_up", tile, w.gate), {ceil_div(args.width, 32), max_blocks, 1},
              {normed, sorted, starts, blocks, external(w.gate.codes), external(w.gate.scales), external(w.gate.biases),
               external(w.up.codes), external(w.up.scales), external(w.up.biases), activation},
              kernels::GroupedGemmArgs{args.width, hidden(), args.group_size, slot_count});
  const Operand expert_out = planner.temporary(size_t{pairs} * hidden() * 2);
  planner.add(for_tile("moe_down", tile, w.down), {ceil_div(hidden(), 64), max_blocks, 1},
              {activation, starts, blocks, external(w.down.codes), external(w.down.scales), external(w.down.biases),
               expert_out},
              kernels::GroupedGemmArgs{hidden(), args.width, args.down_group_size, slot_count});
  planner.add("moe_combine", {n, 1, 1}, {expert_out, places, weights, external(chunk.x)},
              kernels::CombineArgs{n, hidden(), slot_count});
}

}  // namespace lily::gpu
