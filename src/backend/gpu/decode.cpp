// Decode: every weight is read once for a step, and the kernels are as few as dependencies allow.
#include <algorithm>

#include "backend/gpu/schedule.h"

namespace lily::gpu {
namespace {

// Row i of n equal rows.
Operand row(const Operand& operand, uint32_t i, uint32_t n) {
  const size_t bytes = operand.view.bytes / n;
  return operand.part(i * bytes, bytes);
}

}  // namespace

void Schedule::norm_gemv(Planner& planner, const GpuMatrix& m, const BufferView& norm, uint32_t n, const Operand& x,
                         const Operand& y) const {
  const RowCut cut = cut_rows(m.rows, tuning_.gemv_groups);
  planner.add(for_bits("norm_gemv", m), {cut.groups, n, 1},
              {x, external(norm), external(m.codes), external(m.scales), external(m.biases), y},
              kernels::GemvArgs{m.rows, m.cols, m.group_size, config_.rms_norm_eps, cut.simd_rows, cut.passes});
}

void Schedule::gemv_add(Planner& planner, const GpuMatrix& m, uint32_t n, const Operand& x, const Operand& y) const {
  const RowCut cut = cut_rows(m.rows, tuning_.gemv_groups);
  planner.add(for_bits("gemv_add", m), {cut.groups, n, 1},
              {x, external(m.codes), external(m.scales), external(m.biases), y},
              kernels::GemvArgs{m.rows, m.cols, m.group_size, 0, cut.simd_rows, cut.passes});
}

void Schedule::decode(Planner& planner, std::span<GpuState* const> states, const BufferView& tokens,
                      const BufferView& logits) const {
  const auto n = static_cast<uint32_t>(states.size());
  const Operand x = planner.temporary(size_t{n} * hidden() * 4);
  const GpuMatrix& m = weights_.embed;
  planner.add(for_bits("embed", m), {1, n, 1},
              {external(tokens), external(m.codes), external(m.scales), external(m.biases), x},
              kernels::EmbedArgs{n, hidden(), m.group_size, m.rows});
  for (int layer = 0; layer < config_.num_layers(); ++layer) {
    if (config_.layers[layer] == LayerKind::full_attention) {
      decode_full_attention(planner, states, layer, x);
    } else {
      decode_linear_attention(planner, states, layer, x);
    }
    decode_feed_forward(planner, n, layer, x);
  }
  norm_gemv(planner, weights_.head, weights_.final_norm, n, x, external(logits));
}

void Schedule::decode_linear_attention(Planner& planner, std::span<GpuState* const> states, int layer,
                                       const Operand& x) const {
  const GpuLayer& w = weights_.layers[layer];
  const auto n = static_cast<uint32_t>(states.size());
  const int index = linear_index(layer);
  const Operand projections = planner.temporary(size_t{n} * w.in.rows * 4);
  norm_gemv(planner, w.in, w.input_norm, n, x, projections);
  const Operand out = planner.temporary(size_t{n} * config_.linear_value_size() * 4);
  for (uint32_t i = 0; i < n; ++i) {
    if (!tuning_.mechanisms.norm_fusion) {
      plain_delta_step(planner, *states[i], layer, row(projections, i, n), row(out, i, n));
      continue;
    }
    const Buffer &before = states[i]->before(), &after = states[i]->after();
    planner.add("delta_step", {static_cast<uint32_t>(config_.linear_value_heads), 1, 1},
                {row(projections, i, n), external(w.conv), external(w.a_log), external(w.dt_bias), external(w.norm),
                 external(states_.history(before, index)), external(states_.history(after, index)),
                 external(states_.recurrent(before, index)), external(states_.recurrent(after, index)), row(out, i, n)},
                delta_args(1, w.in.rows));
  }
  gemv_add(planner, w.out, n, out, x);
}

void Schedule::decode_full_attention(Planner& planner, std::span<GpuState* const> states, int layer,
                                     const Operand& x) const {
  const GpuLayer& w = weights_.layers[layer];
  const auto n = static_cast<uint32_t>(states.size());
  const Operand projections = planner.temporary(size_t{n} * w.in.rows * 4);
  norm_gemv(planner, w.in, w.input_norm, n, x, projections);
  const Operand out = planner.temporary(size_t{n} * config_.query_size() * 4);
  for (uint32_t i = 0; i < n; ++i) {
    kernels::AttentionArgs args = attention_args(1, w.in.rows, layer);
    args.splits = splits(states[i]->position() + 1);
    const Operand partial = planner.temporary(size_t{args.heads} * args.splits * (kernels::head_dim + 2) * 4);
    if (!plain_attend(planner, *states[i], layer, args, row(projections, i, n), row(out, i, n), partial)) {
      planner.add("attend_step", {args.splits, args.kv_heads, 1},
                  {row(projections, i, n), external(w.q_norm), external(w.k_norm), external(weights_.rope),
                   external(states[i]->step()), external(states[i]->blocks()), unordered(states_.pool.view()),
                   row(out, i, n), partial},
                  args);
    }
    if (args.splits > 1) {
      planner.add("attend_merge", {args.heads, 4, 1}, {row(projections, i, n), partial, row(out, i, n)}, args);
    }
  }
  gemv_add(planner, w.out, n, out, x);
}

void Schedule::decode_feed_forward(Planner& planner, uint32_t n, int layer, const Operand& x) const {
  const GpuLayer& w = weights_.layers[layer];
  const kernels::MoeArgs args = moe_args(n, w);
  const Operand logits = planner.temporary(std::max<size_t>(16, size_t{n} * w.router.rows * 4));
  if (config_.is_moe()) norm_gemv(planner, w.router, w.post_attention_norm, n, x, logits);
  const Operand activation = planner.temporary(size_t{n} * slots() * args.width * 4);
  if (tuning_.mechanisms.gate_up_fusion) {
    planner.add(
        for_bits("experts_gate_up", w.gate), {ceil_div(args.width, expert_rows), slots(), n},
        {x, external(w.post_attention_norm), logits, external(w.gate.codes), external(w.gate.scales),
         external(w.gate.biases), external(w.up.codes), external(w.up.scales), external(w.up.biases), activation},
        args);
  } else {
    plain_gate_up(planner, n, layer, x, logits, activation);
  }
  if (tuning_.mechanisms.down_fusion) {
    planner.add(for_bits("experts_down", w.down), {ceil_div(hidden(), expert_rows), n, 1},
                {activation, logits, external(w.down.codes), external(w.down.scales), external(w.down.biases), x},
                args);
  } else {
    plain_down(planner, n, layer, activation, logits, x);
  }
}

void Schedule::sample(Planner& planner, const GpuState& state, const BufferView& logits, const BufferView& token,
                      const DeviceSampling& sampling) const {
  const bool greedy = sampling.temperature <= 0 || sampling.top_k == 1;
  const uint32_t candidates =
      greedy ? 1 : std::min(sampling.top_k == 0 ? kernels::max_candidates : sampling.top_k, kernels::max_candidates);
  const kernels::SampleArgs args{.vocab = sampling.tokens,
                                 .candidates = candidates,
                                 .parts = tuning_.sample_parts,
                                 .temperature = sampling.temperature,
                                 .top_p = sampling.top_p,
                                 .min_p = sampling.min_p,
                                 .seed_low = static_cast<uint32_t>(sampling.seed),
                                 .seed_high = static_cast<uint32_t>(sampling.seed >> 32)};
  const Operand parts = planner.temporary(size_t{args.parts} * candidates * 8);
  planner.add("sample_parts", {args.parts, 1, 1}, {external(logits), parts}, args);
  planner.add("sample_pick", {1, 1, 1}, {parts, external(state.step()), external(token)}, args);
}

}  // namespace lily::gpu
