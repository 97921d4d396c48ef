// The model as operations of the kernels: one schedule for prefill, where many rows share each weight, and one for decode, where
// bytes are what counts.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "backend/gpu/gpu_state.h"
#include "backend/gpu/gpu_weights.h"
#include "backend/gpu/planner.h"
#include "backend/gpu/tuning.h"
#include "kernels/args.h"

namespace lily::gpu {

class Schedule {
 public:
  Schedule(const ModelConfig& config, const GpuWeights& weights, const StateLayout& states, const Tuning& tuning)
      : config_(config), weights_(weights), states_(states), tuning_(tuning) {}

  // A chunk of one sequence: tokens int [n], x f32 [n, hidden] is the residual stream, which outlives the plan.
  struct Chunk {
    GpuState& state;
    uint32_t n;
    BufferView tokens, x;
  };
  void embed(Planner& planner, const Chunk& chunk) const;
  void prefill_layer(Planner& planner, const Chunk& chunk, int layer) const;
  // logits f32 [count, vocab] of rows [first, first + count) of x.
  void head(Planner& planner, const BufferView& x, uint32_t first, uint32_t count, const BufferView& logits) const;
  // normed bf16 [count, hidden]: what the head multiplies.
  void final_norm(Planner& planner, const BufferView& x, uint32_t count, const Operand& normed) const;

  // One step of several sequences: tokens int [sequences], logits f32 [sequences, vocab].
  void decode(Planner& planner, std::span<GpuState* const> states, const BufferView& tokens,
              const BufferView& logits) const;

  // logits of one sequence -> the next token, in its step and in `token`.
  void sample(Planner& planner, const GpuState& state, const BufferView& logits, const BufferView& token,
              const DeviceSampling& sampling) const;

  // Threadgroups a KV head for a context of so many tokens.
  uint32_t splits(int64_t context) const;

 private:
  uint32_t hidden() const { return static_cast<uint32_t>(config_.hidden_size); }
  uint32_t slots() const { return static_cast<uint32_t>(config_.experts_per_token) + weights_.shared_parts; }
  int linear_index(int layer) const;  // among the linear layers
  int full_index(int layer) const;
  kernels::DeltaArgs delta_args(uint32_t n, uint32_t stride) const;
  kernels::AttentionArgs attention_args(uint32_t n, uint32_t stride, int layer) const;
  kernels::MoeArgs moe_args(uint32_t n, const GpuLayer& layer) const;

  void rms_norm(Planner& planner, const BufferView& x, const BufferView& weight, uint32_t n, const Operand& out) const;
  void gemm(Planner& planner, const GpuMatrix& m, uint32_t first_row, uint32_t rows, uint32_t n, const Operand& x,
            const Operand& y, uint32_t stride, kernels::GemmOutput output) const;
  void prefill_linear_attention(Planner& planner, const Chunk& chunk, int layer, const Operand& normed) const;
  void prefill_full_attention(Planner& planner, const Chunk& chunk, int layer, const Operand& normed) const;
  void prefill_feed_forward(Planner& planner, const Chunk& chunk, int layer, const Operand& normed) const;

  void norm_gemv(Planner& planner, const GpuMatrix& m, const BufferView& norm, uint32_t n, const Operand& x,
                 const Operand& y) const;
  void gemv_add(Planner& planner, const GpuMatrix& m, uint32_t n, const Operand& x, const Operand& y) const;
  void decode_linear_attention(Planner& planner, std::span<GpuState* const> states, int layer, const Operand& x) const;
  void decode_full_attention(Planner& planner, std::span<GpuState* const> states, int layer, const Operand& x) const;
  void decode_feed_forward(Planner& planner, uint32_t n, int layer, const Operand& x) const;

  const ModelConfig& config_;
  const GpuWeights& weights_;
  const StateLayout& states_;
  Tuning tuning_;
};

// "gemm_64" and 4: "gemm_64_4"
std::string for_bits(const std::string& kernel, const GpuMatrix& m);

inline uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

}  // namespace lily::gpu
