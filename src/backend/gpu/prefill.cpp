// Prefill: matrix products over the rows of a chunk, weights dequantised tile by tile on the chip.
#include <algorithm>

#include "backend/gpu/schedule.h"

namespace lily::gpu {

// Rows of a tile: as few as hold the rows there are, since what is left over is computed in vain. Widths of codes that are
// rare have one size.
uint32_t Schedule::tile_rows(uint32_t rows, const GpuMatrix& m) const {
  if (m.bits != 4 && m.bits != 8 && m.bits != 16) return 32;
  if (!tuning_.mechanisms.adaptive_tile) return 64;
  return rows <= 16 ? 16 : rows <= 48 ? 32 : 64;
}

void Schedule::embed(Planner& planner, const Chunk& chunk) const {
  const GpuMatrix& m = weights_.embed;
  planner.add(for_bits("embed", m), {1, chunk.n, 1},
              {external(chunk.tokens), external(m.codes), external(m.scales), external(m.biases), external(chunk.x)},
              kernels::EmbedArgs{chunk.n, hidden(), m.group_size, m.rows});
}

void Schedule::gemm(Planner& planner, const GpuMatrix& m, uint32_t first_row, uint32_t rows, uint32_t n,
                    const Operand& x, const Operand& y, uint32_t stride, kernels::GemmOutput output) const {
  if (!tuning_.mechanisms.fused_dequantisation && m.bits != 16) {
    gemm_from_memory(planner, m, first_row, rows, n, x, y, stride, output);
    return;
  }
  const uint32_t tile = tile_rows(n, m);
  planner.add(for_tile("gemm", tile, m), {ceil_div(rows, 64), ceil_div(n, tile), 1},
              {x, external(m.codes), external(m.scales), external(m.biases), y},
              kernels::GemmArgs{n, rows, first_row, m.cols, m.group_size, stride, output});
}

void Schedule::prefill_layer(Planner& planner, const Chunk& chunk, int layer) const {
  const Routed r = routed(chunk, layer, [&](size_t bytes) { return planner.temporary(bytes); });
  prefill_choose(planner, chunk, layer, r);
  const kernels::GroupArgs args = group_args(chunk, r);
  const Operand counts = planner.temporary(args.groups * 4);
  planner.add("group_count", {args.groups, 1, 1}, {r.choices, counts}, args);
  planner.add("group_map", {1, 1, 1}, {counts, r.starts, r.blocks}, args);
  planner.add("group_scatter", {args.groups, 1, 1}, {r.choices, r.starts, r.sorted, r.places}, args);
  prefill_experts(planner, chunk, layer, r);
}

Schedule::Routed Schedule::routed(const Chunk& chunk, int layer,
                                  const std::function<Operand(size_t bytes)>& memory) const {
  const uint32_t pairs = chunk.n * slots();
  const uint32_t groups = static_cast<uint32_t>(config_.num_experts) + weights_.shared_parts;
  Routed r;
  r.tile = tile_rows(pairs / groups, weights_.layers[layer].gate);
  r.max_blocks = std::min(pairs, pairs / r.tile + std::min(groups, pairs));
  r.normed = memory(size_t{chunk.n} * hidden() * 2);
  for (Operand* operand : {&r.choices, &r.weights, &r.sorted, &r.places}) *operand = memory(size_t{pairs} * 4);
  r.starts = memory((groups + 1) * 4);
  r.blocks = memory((1 + 2 * size_t{r.max_blocks}) * 4);
  return r;
}

kernels::GroupArgs Schedule::group_args(const Chunk& chunk, const Routed& routed) const {
  return {chunk.n, slots(), static_cast<uint32_t>(config_.num_experts) + weights_.shared_parts, routed.tile};
}

void Schedule::prefill_choose(Planner& planner, const Chunk& chunk, int layer, const Routed& routed) const {
  const GpuLayer& w = weights_.layers[layer];
  const Operand normed = planner.temporary(size_t{chunk.n} * hidden() * 2);
  rms_norm(planner, chunk.x, w.input_norm, chunk.n, normed);
  if (config_.layers[layer] == LayerKind::full_attention) {
    prefill_full_attention(planner, chunk, layer, normed);
  } else {
    prefill_linear_attention(planner, chunk, layer, normed);
  }
  rms_norm(planner, chunk.x, w.post_attention_norm, chunk.n, routed.normed);
  const Operand logits = planner.temporary(std::max<size_t>(16, size_t{chunk.n} * w.router.rows * 4));
  if (config_.is_moe()) {
    gemm(planner, w.router, 0, w.router.rows, chunk.n, routed.normed, logits, w.router.rows, kernels::gemm_store_f32);
  }
  planner.add("route", {chunk.n, 1, 1}, {logits, routed.choices, routed.weights}, moe_args(chunk.n, w));
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
  if (tuning_.mechanisms.register_scan) {
    planner.add("delta_scan", {kernels::linear_dim / 32, heads, 1},
                {qkv, decay, beta, recurrent(chunk.state.before()), recurrent(chunk.state.after()), read}, args);
  } else {
    scan_by_token(planner, chunk, args, qkv, decay, beta, states_.recurrent(chunk.state.before(), index),
                  states_.recurrent(chunk.state.after(), index), read);
  }
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

void Schedule::prefill_experts(Planner& planner, const Chunk& chunk, int layer, const Routed& routed) const {
  const GpuLayer& w = weights_.layers[layer];
  const uint32_t n = chunk.n, slot_count = slots(), pairs = n * slot_count;
  const kernels::MoeArgs args = moe_args(n, w);
  const Operand activation = planner.temporary(size_t{pairs} * args.width * 2);
  const Operand expert_out = planner.temporary(size_t{pairs} * hidden() * 2);
  if (!tuning_.mechanisms.fused_dequantisation && w.gate.bits != 16 && w.down.bits != 16) {
    experts_from_memory(planner, chunk, layer, routed, activation, expert_out);
  } else {
    planner.add(
        for_tile("moe_gate_up", routed.tile, w.gate), {ceil_div(args.width, 32), routed.max_blocks, 1},
        {routed.normed, routed.sorted, routed.starts, routed.blocks, external(w.gate.codes), external(w.gate.scales),
         external(w.gate.biases), external(w.up.codes), external(w.up.scales), external(w.up.biases), activation},
        kernels::GroupedGemmArgs{args.width, hidden(), args.group_size, slot_count});
    planner.add(for_tile("moe_down", routed.tile, w.down), {ceil_div(hidden(), 64), routed.max_blocks, 1},
                {activation, routed.starts, routed.blocks, external(w.down.codes), external(w.down.scales),
                 external(w.down.biases), expert_out},
                kernels::GroupedGemmArgs{hidden(), args.width, args.down_group_size, slot_count});
  }
  planner.add("moe_combine", {n, 1, 1}, {expert_out, routed.places, routed.weights, external(chunk.x)},
              kernels::CombineArgs{n, hidden(), slot_count});
}

}  // namespace lily::gpu
