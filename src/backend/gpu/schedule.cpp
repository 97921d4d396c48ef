// What both phases share.
#include "backend/gpu/schedule.h"

#include <algorithm>

namespace lily::gpu {

std::string for_bits(const std::string& kernel, const GpuMatrix& m) { return kernel + "_" + std::to_string(m.bits); }

std::string for_tile(const std::string& kernel, uint32_t tile, const GpuMatrix& m) {
  return for_bits(kernel + "_" + std::to_string(tile), m);
}

int Schedule::linear_index(int layer) const {
  return static_cast<int>(
      std::count(config_.layers.begin(), config_.layers.begin() + layer, LayerKind::linear_attention));
}

int Schedule::full_index(int layer) const { return layer - linear_index(layer); }

kernels::DeltaArgs Schedule::delta_args(uint32_t n, uint32_t stride) const {
  const auto heads = static_cast<uint32_t>(config_.linear_value_heads);
  return {.n = n,
          .key_heads = static_cast<uint32_t>(config_.linear_key_heads),
          .value_heads = heads,
          .stride = stride,
          .gate_stride = 2 * heads,
          .eps = config_.rms_norm_eps};
}

kernels::AttentionArgs Schedule::attention_args(uint32_t n, uint32_t stride, int layer) const {
  const int index = full_index(layer);
  return {.n = n,
          .heads = static_cast<uint32_t>(config_.num_heads),
          .kv_heads = static_cast<uint32_t>(config_.num_kv_heads),
          .stride = stride,
          .kv_layers = static_cast<uint32_t>(full_index(config_.num_layers())),
          .kv_layer = static_cast<uint32_t>(index),
          .rotary_dim = static_cast<uint32_t>(config_.rotary_dim),
          .splits = 1,
          .eps = config_.rms_norm_eps};
}

kernels::MoeArgs Schedule::moe_args(uint32_t n, const GpuLayer& layer) const {
  return {.n = n,
          .hidden = hidden(),
          .experts = static_cast<uint32_t>(config_.num_experts),
          .top_k = static_cast<uint32_t>(config_.experts_per_token),
          .shared_parts = weights_.shared_parts,
          .width = weights_.width,
          .group_size = layer.gate.group_size,
          .down_group_size = layer.down.group_size,
          .logits_stride = layer.router.rows,
          .eps = config_.rms_norm_eps};
}

uint32_t Schedule::splits(int64_t context) const {
  const int64_t wanted = (context + tuning_.split_tokens - 1) / tuning_.split_tokens;
  if (!tuning_.mechanisms.split_attention) return 1;
  uint32_t splits = 1;
  while (splits < wanted && splits < tuning_.max_splits) splits *= 2;  // few different plans as a context grows
  return std::min(splits, std::max(1u, tuning_.max_splits));
}

void Schedule::rms_norm(Planner& planner, const BufferView& x, const BufferView& weight, uint32_t n,
                        const Operand& out) const {
  planner.add("rms_norm", {n, 1, 1}, {external(x), external(weight), out},
              kernels::NormArgs{hidden(), config_.rms_norm_eps});
}

void Schedule::final_norm(Planner& planner, const BufferView& x, uint32_t count, const Operand& normed) const {
  rms_norm(planner, x, weights_.final_norm, count, normed);
}

void Schedule::head(Planner& planner, const BufferView& x, uint32_t first, uint32_t count,
                    const BufferView& logits) const {
  const size_t row = size_t{hidden()} * sizeof(float);
  const BufferView rows = x.part(first * row, count * row);
  if (count == 1) {
    norm_gemv(planner, weights_.head, weights_.final_norm, 1, external(rows), external(logits));
    return;
  }
  const Operand normed = planner.temporary(size_t{count} * hidden() * 2);
  final_norm(planner, rows, count, normed);
  gemm(planner, weights_.head, 0, weights_.head.rows, count, normed, external(logits), weights_.head.rows,
       kernels::gemm_store_f32);
}

}  // namespace lily::gpu
