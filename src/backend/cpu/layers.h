// The three blocks of a layer over a chunk of tokens. Each adds its result to the residual stream x [tokens, hidden].
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/compute.h"
#include "backend/cpu/state.h"
#include "model/config.h"

namespace lily::cpu {

// Rows [first, first + tokens) of a chunk continue one sequence. A chunk is a single run, or several of one token each.
struct Run {
  CpuState* state;
  int64_t first, tokens;
};
using Runs = std::span<const Run>;

// cos and sin of the angles of a chunk's positions: [tokens, rotary_dim / 2] each.
struct RopeTable {
  std::vector<float> cos, sin;

  void fill(const ModelConfig& config, Runs runs);
};

// Grouped-query attention with per-head norms, RoPE and an output gate.
class FullAttention {
 public:
  explicit FullAttention(DType kv_dtype) : kv_dtype_(kv_dtype) {}

  void run(Compute& compute, const ModelConfig& config, const FullAttentionWeights& w, const Activations& in,
           const RopeTable& rope, Runs runs, int layer, float* x);

 private:
  void write_keys_and_queries(Compute& compute, const ModelConfig& config, const FullAttentionWeights& w,
                              const RopeTable& rope, const Run& run, int layer);
  void attend(Compute& compute, const ModelConfig& config, const Run& run, int layer);

  DType kv_dtype_;
  AlignedVector<float> query_gate_;      // [tokens, heads, query | gate, head_dim]
  AlignedVector<float> keys_, values_;   // [tokens, kv_heads, head_dim]
  AlignedVector<float> queries_;         // [tokens, heads, head_dim], turned and scaled
  AlignedVector<float> sums_;            // [segments, tokens of a run, heads, head_dim]
  std::vector<AttentionQuery> softmax_;  // [segments, tokens of a run, heads]
  Activations out_;                      // [tokens, heads * head_dim]
};

// Gated DeltaNet: short convolution, gated delta rule, gated norm.
class LinearAttention {
 public:
  void run(Compute& compute, const ModelConfig& config, const LinearAttentionWeights& w, const Activations& in,
           Runs runs, int layer, float* x);

 private:
  void convolve_and_normalize(Compute& compute, const ModelConfig& config, const LinearAttentionWeights& w, Runs runs,
                              int layer);
  void gates(Compute& compute, const ModelConfig& config, const LinearAttentionWeights& w, int64_t tokens);

  AlignedVector<float> conv_in_;     // by run: [conv_kernel - 1 + tokens, conv_channels]
  AlignedVector<float> qkv_;         // [tokens, conv_channels], after convolution, q and k normalised
  AlignedVector<float> z_;           // [tokens, value heads, value_dim]
  std::vector<float> decay_, beta_;  // [tokens, value heads]; first a and b
  AlignedVector<float> read_;        // [tokens, value heads, value_dim]
  Activations out_;                  // the same, normed and gated
};

// Experts grouped by token, the shared expert beside them; or the dense MLP.
class FeedForward {
 public:
  void run(Compute& compute, const ModelConfig& config, const LayerWeights& w, const Activations& in, float* x);

 private:
  struct Expert {
    WeightMatrix gate, up, down;
    const int32_t* tokens;  // that chose it; null: all, in order
    const float* weights;   // one for each of them; null: 1
    int64_t n;
    const Activations* input;  // rows [input_first, input_first + n) are those tokens'
    int64_t input_first;
    Activations* activation;  // rows [first, first + n) are this expert's
    int64_t first;
  };

  struct Item {  // rows [first, end) of gate and up
    const Expert* expert;
    int64_t first, end;
  };

  void route(Compute& compute, const ModelConfig& config, int64_t tokens);
  void group_by_expert(Compute& compute, const ModelConfig& config, const MoeWeights& w, const Activations& in);
  void gate_and_up(Compute& compute, int64_t tokens);
  void down_and_combine(Compute& compute, int64_t hidden, int64_t tokens, float* x);

  std::vector<float> router_logits_;  // [tokens, experts]
  std::vector<float> shared_weight_;  // [tokens]
  std::vector<int32_t> choice_;       // [tokens, k]: expert
  std::vector<float> choice_weight_;  // [tokens, k]
  std::vector<int32_t> token_list_;   // [tokens * k], grouped by expert
  std::vector<float> weight_list_;    // [tokens * k], alike
  std::vector<int64_t> run_end_;      // by expert, of its run in the lists
  std::vector<Item> items_;
  std::vector<Expert> experts_;  // those with tokens; the shared one first
  Activations gathered_;         // [tokens * k, hidden]: the experts' inputs, in the lists' order
  Activations routed_;           // [tokens * k, expert_size]: silu(gate) * up
  Activations shared_;           // [tokens, shared_expert_size]
};

}  // namespace lily::cpu
