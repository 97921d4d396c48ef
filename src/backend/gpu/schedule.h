// The model as operations of the kernels: one schedule for prefill, where many rows share each weight, and one for decode, where
// bytes are what counts.
#pragma once

#include <cstdint>
#include <functional>
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

  void set_tuning(const Tuning& tuning) { tuning_ = tuning; }
  PlanOptions plan_options() const { return {.concurrent = tuning_.mechanisms.concurrency}; }

  // Rows of a chunk that 32-bit indices of its largest intermediate result reach, [rows * slots, hidden].
  size_t most_rows() const { return 0xffffffffu / (slots() * hidden()); }

  // A chunk of one sequence: tokens int [n], x f32 [n, hidden] is the residual stream, which outlives the plan.
  struct Chunk {
    GpuState& state;
    uint32_t n;
    BufferView tokens, x;
  };
  void embed(Planner& planner, const Chunk& chunk) const;
  void prefill_layer(Planner& planner, const Chunk& chunk, int layer) const;

  // What a chunk's feed-forward is made of, between its choice of experts and their products. P = n * slots.
  struct Routed {
    Operand normed;                     // bf16 [n, hidden]
    Operand choices, weights;           // uint [P], f32 [P]
    Operand starts, blocks;             // uint [groups + 1], uint [1 + 2 * max blocks]
    Operand sorted, places;             // uint [P], uint [P]
    uint32_t tile = 0, max_blocks = 0;  // rows of a block; blocks that there are at most
  };
  // The layer in two halves, for who groups the rows in between: mixer, norm and choices; experts.
  Routed routed(const Chunk& chunk, int layer, const std::function<Operand(size_t bytes)>& memory) const;
  void prefill_choose(Planner& planner, const Chunk& chunk, int layer, const Routed& routed) const;
  void prefill_experts(Planner& planner, const Chunk& chunk, int layer, const Routed& routed) const;
  kernels::GroupArgs group_args(const Chunk& chunk, const Routed& routed) const;
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
  uint32_t tile_rows(uint32_t rows, const GpuMatrix& m) const;

  void norm_gemv(Planner& planner, const GpuMatrix& m, const BufferView& norm, uint32_t n, const Operand& x,
                 const Operand& y) const;
  void gemv_add(Planner& planner, const GpuMatrix& m, uint32_t n, const Operand& x, const Operand& y) const;
  void decode_linear_attention(Planner& planner, std::span<GpuState* const> states, int layer, const Operand& x) const;
  void decode_full_attention(Planner& planner, std::span<GpuState* const> states, int layer, const Operand& x) const;
  void decode_feed_forward(Planner& planner, uint32_t n, int layer, const Operand& x) const;

  // Plain forms of parts of the above (unfused.cpp).
  GpuMatrix dequantised(Planner& planner, const GpuMatrix& m, uint32_t first_row, uint32_t rows, const Operand& after,
                        Operand& weights) const;
  void gemm_from_memory(Planner& planner, const GpuMatrix& m, uint32_t first_row, uint32_t rows, uint32_t n,
                        const Operand& x, const Operand& y, uint32_t stride, kernels::GemmOutput output) const;
  void experts_from_memory(Planner& planner, const Chunk& chunk, int layer, const Routed& routed,
                           const Operand& activation, const Operand& out) const;
  void scan_by_token(Planner& planner, const Chunk& chunk, const kernels::DeltaArgs& args, const Operand& qkv,
                     const Operand& decay, const Operand& beta, const BufferView& before, const BufferView& after,
                     const Operand& read) const;
  void plain_gate_up(Planner& planner, uint32_t n, int layer, const Operand& x, const Operand& logits,
                     const Operand& activation) const;
  void plain_down(Planner& planner, uint32_t n, int layer, const Operand& activation, const Operand& logits,
                  const Operand& x) const;
  Operand routes(Planner& planner, uint32_t n, int layer, const Operand& logits, const Operand& weights) const;
  void plain_delta_step(Planner& planner, const GpuState& state, int layer, const Operand& projections,
                        const Operand& out) const;
  // True if it has added attention of one of the other forms.
  bool plain_attend(Planner& planner, const GpuState& state, int layer, const kernels::AttentionArgs& args,
                    const Operand& projections, const Operand& out, const Operand& partial) const;

  const ModelConfig& config_;
  const GpuWeights& weights_;
  const StateLayout& states_;
  Tuning tuning_;
};

// "gemm_64" and 4: "gemm_64_4"
std::string for_bits(const std::string& kernel, const GpuMatrix& m);
// "gemm", 64 rows and 4: "gemm_64_4"
std::string for_tile(const std::string& kernel, uint32_t tile, const GpuMatrix& m);

constexpr uint32_t expert_rows = 16;  // of a threadgroup of the experts' kernels for single tokens

inline uint32_t ceil_div(uint32_t a, uint32_t b) { return (a + b - 1) / b; }

}  // namespace lily::gpu
