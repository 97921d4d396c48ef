// The plain forms of what Mechanisms switches off: the same work by more kernels, with what is between them in memory.
#include "backend/gpu/unfused.h"

namespace lily::gpu {

// Rows [first_row, first_row + rows) as a bf16 matrix of their own, made once `after` is there and not before: temporaries of
// all layers would live at once. Two dispatches, so that what comes next is not launched while they run: the 16-bit kernels
// may read weights before they wait.
GpuMatrix Schedule::dequantised(Planner& planner, const GpuMatrix& m, uint32_t first_row, uint32_t rows,
                                const Operand& after, Operand& weights) const {
  const size_t row_bytes = size_t{m.cols} * 2;
  const uint32_t row_units = m.cols / 32;
  weights = planner.temporary(rows * row_bytes);
  for (const uint32_t half : {0u, 1u}) {
    const uint32_t first = half * (rows / 2), count = half == 0 ? rows / 2 : rows - rows / 2;
    planner.add(for_bits("dequantize", m), {ceil_div(count * row_units, 256), 1, 1},
                {external(m.codes), external(m.scales), external(m.biases), after,
                 weights.part(first * row_bytes, count * row_bytes)},
                kernels::DequantizeArgs{(first_row + first) * row_units, count * row_units, m.group_size});
  }
  return {.rows = rows, .cols = m.cols, .bits = 16, .group_size = m.group_size};
}

void Schedule::gemm_from_memory(Planner& planner, const GpuMatrix& m, uint32_t first_row, uint32_t rows, uint32_t n,
                                const Operand& x, const Operand& y, uint32_t stride, kernels::GemmOutput output) const {
  Operand weights;
  const GpuMatrix wide = dequantised(planner, m, first_row, rows, x, weights);
  const uint32_t tile = tile_rows(n, wide);
  planner.add(for_tile("gemm", tile, wide), {ceil_div(rows, 64), ceil_div(n, tile), 1},
              {x, weights, external(m.scales), external(m.biases), y},
              kernels::GemmArgs{n, rows, 0, m.cols, m.group_size, stride, output});
}

void Schedule::experts_from_memory(Planner& planner, const Chunk& chunk, int layer, const Routed& routed,
                                   const Operand& activation, const Operand& out) const {
  const GpuLayer& w = weights_.layers[layer];
  const kernels::MoeArgs args = moe_args(chunk.n, w);
  Operand gate, up, down;
  const GpuMatrix wide = dequantised(planner, w.gate, 0, w.gate.rows, routed.places, gate);
  dequantised(planner, w.up, 0, w.up.rows, routed.places, up);
  planner.add(for_tile("moe_gate_up", routed.tile, wide), {ceil_div(args.width, 32), routed.max_blocks, 1},
              {routed.normed, routed.sorted, routed.starts, routed.blocks, gate, external(w.gate.scales),
               external(w.gate.biases), up, external(w.up.scales), external(w.up.biases), activation},
              kernels::GroupedGemmArgs{args.width, hidden(), args.group_size, slots()});
  const GpuMatrix wide_down = dequantised(planner, w.down, 0, w.down.rows, activation, down);
  planner.add(for_tile("moe_down", routed.tile, wide_down), {ceil_div(hidden(), 64), routed.max_blocks, 1},
              {activation, routed.starts, routed.blocks, down, external(w.down.scales), external(w.down.biases), out},
              kernels::GroupedGemmArgs{hidden(), args.width, args.down_group_size, slots()});
}

// The first token takes the state from `before`, the others update `after` in place.
void Schedule::scan_by_token(Planner& planner, const Chunk& chunk, const kernels::DeltaArgs& args, const Operand& qkv,
                             const Operand& decay, const Operand& beta, const BufferView& before,
                             const BufferView& after, const Operand& read) const {
  kernels::DeltaArgs one = args;
  one.n = 1;
  const auto token = [&](const Operand& all, uint32_t t) {
    const size_t bytes = all.view.bytes / chunk.n;
    return all.part(t * bytes, bytes);
  };
  for (uint32_t t = 0; t < chunk.n; ++t) {
    planner.add("delta_scan", {kernels::linear_dim / 32, args.value_heads, 1},
                {token(qkv, t), token(decay, t), token(beta, t), external(t == 0 ? before : after), external(after),
                 token(read, t)},
                one);
  }
}

// Choices of a decode step's tokens, and weights; the fused kernels find them for themselves.
Operand Schedule::routes(Planner& planner, uint32_t n, int layer, const Operand& logits, const Operand& weights) const {
  const Operand choices = planner.temporary(size_t{n} * slots() * 4);
  planner.add("route", {n, 1, 1}, {logits, choices, weights}, moe_args(n, weights_.layers[layer]));
  return choices;
}

void Schedule::plain_gate_up(Planner& planner, uint32_t n, int layer, const Operand& x, const Operand& logits,
                             const Operand& activation) const {
  const GpuLayer& w = weights_.layers[layer];
  const uint32_t width = weights_.width, count = n * slots() * width;
  const Operand normed = planner.temporary(size_t{n} * hidden() * 4);
  planner.add("rms_norm_float", {n, 1, 1}, {x, external(w.post_attention_norm), normed},
              kernels::NormArgs{hidden(), config_.rms_norm_eps});
  const Operand choices = routes(planner, n, layer, logits, planner.temporary(size_t{n} * slots() * 4));
  const Operand gate = planner.temporary(size_t{count} * 4), up = planner.temporary(size_t{count} * 4);
  const auto product = [&](const GpuMatrix& m, const Operand& y) {
    planner.add(for_bits("expert_product", m), {ceil_div(width, expert_rows), slots(), n},
                {normed, choices, external(m.codes), external(m.scales), external(m.biases), y},
                kernels::ProductArgs{width, hidden(), m.group_size, slots(), 0});
  };
  product(w.gate, gate);
  product(w.up, up);
  planner.add("silu_multiply", {ceil_div(count, 256), 1, 1}, {gate, up, activation}, kernels::CountArgs{count});
}

void Schedule::plain_down(Planner& planner, uint32_t n, int layer, const Operand& activation, const Operand& logits,
                          const Operand& x) const {
  const GpuMatrix& m = weights_.layers[layer].down;
  const Operand weights = planner.temporary(size_t{n} * slots() * 4);
  const Operand choices = routes(planner, n, layer, logits, weights);
  const Operand out = planner.temporary(size_t{n} * slots() * hidden() * 4);
  planner.add(for_bits("expert_product", m), {ceil_div(hidden(), expert_rows), slots(), n},
              {activation, choices, external(m.codes), external(m.scales), external(m.biases), out},
              kernels::ProductArgs{hidden(), m.cols, m.group_size, slots(), 1});
  planner.add("weighted_sum", {ceil_div(hidden(), 256), n, 1}, {out, weights, x},
              kernels::CombineArgs{n, hidden(), slots()});
}

void Schedule::plain_delta_step(Planner& planner, const GpuState& state, int layer, const Operand& projections,
                                const Operand& out) const {
  const GpuLayer& w = weights_.layers[layer];
  const int index = linear_index(layer);
  const kernels::DeltaArgs args = delta_args(1, w.in.rows);
  const Buffer &before = state.before(), &after = state.after();
  const Operand raw = planner.temporary(size_t(config_.linear_value_size()) * 4);
  planner.add("delta_update", {args.value_heads, 1, 1},
              {projections, external(w.conv), external(w.a_log), external(w.dt_bias),
               external(states_.history(before, index)), external(states_.history(after, index)),
               external(states_.recurrent(before, index)), external(states_.recurrent(after, index)), raw},
              args);
  planner.add("norm_gate", {args.value_heads, 1, 1}, {raw, projections, external(w.norm), out}, args);
}

bool Schedule::plain_attend(Planner& planner, const GpuState& state, int layer, const kernels::AttentionArgs& args,
                            const Operand& projections, const Operand& out, const Operand& partial) const {
  const GpuLayer& w = weights_.layers[layer];
  const Mechanisms& on = tuning_.mechanisms;
  const Operand step = external(state.step()), blocks = external(state.blocks());
  const Operand pool = unordered(states_.pool.view());
  const std::vector<Operand> operands = {
      projections, external(w.q_norm), external(w.k_norm), external(weights_.rope), step, blocks, pool, out, partial};
  if (!on.qk_fusion) {
    const Operand queries = planner.temporary(size_t{args.heads} * kernels::head_dim * 4);
    planner.add(
        "prepare_step", {ceil_div(args.heads + args.kv_heads, 8), 1, 1},
        {projections, external(w.q_norm), external(w.k_norm), external(weights_.rope), step, blocks, pool, queries},
        args);
    planner.add("attend_prepared", {args.splits, args.kv_heads, 1},
                {queries, projections, step, blocks, pool, out, partial}, args);
  } else if (!on.gqa_packing) {
    planner.add("attend_alone", {args.splits, args.heads, 1}, operands, args);
  } else if (!on.coalesced_kv) {
    planner.add("attend_strided", {args.splits, args.kv_heads, 1}, operands, args);
  } else {
    return false;
  }
  return true;
}

Result<void> group_on_host(Device& device, const Schedule::Routed& routed, const kernels::GroupArgs& args) {
  const uint32_t pairs = args.n * args.slots;
  std::vector<uint32_t> choices(pairs), starts(args.groups + 1), blocks{0}, sorted(pairs), places(pairs);
  LILY_CHECK(device.download(routed.choices.view, std::as_writable_bytes(std::span(choices))));
  for (const uint32_t group : choices) ++starts[group + 1];
  for (uint32_t g = 0; g < args.groups; ++g) {
    starts[g + 1] += starts[g];
    for (uint32_t row = starts[g]; row < starts[g + 1]; row += args.tile_rows) {
      blocks.push_back(g);
      blocks.push_back(row);
      ++blocks[0];
    }
  }
  std::vector<uint32_t> next(starts.begin(), starts.end() - 1);
  for (uint32_t pair = 0; pair < pairs; ++pair) {
    places[pair] = next[choices[pair]]++;
    sorted[places[pair]] = pair;
  }
  const auto send = [&](const Operand& to, const std::vector<uint32_t>& from) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(from));
    return device.upload(to.view.part(0, bytes.size()), bytes);
  };
  LILY_CHECK(send(routed.starts, starts));
  LILY_CHECK(send(routed.blocks, blocks));
  LILY_CHECK(send(routed.sorted, sorted));
  return send(routed.places, places);
}

}  // namespace lily::gpu
