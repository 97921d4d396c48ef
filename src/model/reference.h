// The model in plain scalar float32: slow, short, and the oracle for every backend.
//
// Sources: Qwen3.6-35B-A3B as in Hugging Face transformers (modeling_qwen3_5_moe); Gated DeltaNet: Yang, Kautz,
// Hatamizadeh, arXiv 2412.06464; RoPE: Su et al., arXiv 2104.09864; SwiGLU: Shazeer, arXiv 2002.05202.
// Weights are dequantised row by row where they are used; sums run in double, everything stored is float32.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace lily {

// What one layer remembers of a sequence. A linear-attention layer uses the last two, a full-attention layer the first two.
struct ReferenceLayerState {
  std::vector<float> keys, values;  // [tokens, kv_heads, head_dim], keys after RoPE
  std::vector<float> conv;       // [conv_kernel - 1, conv_channels]: the last inputs of the convolution, oldest first
  std::vector<float> recurrent;  // [value_heads, key_dim, value_dim]
};

struct ReferenceState {
  // `bf16`: what goes into every matrix and comes out of it, and the residual stream, is rounded to bf16, as on most GPUs; for
  // the bars of backends that do.
  explicit ReferenceState(const ModelConfig& config, bool bf16 = false);

  bool bf16;
  int64_t position = 0;  // tokens seen
  std::vector<ReferenceLayerState> layers;
};

// Called with each layer's input and at last with the final norm's output: hidden [tokens, hidden_size].
using HiddenObserver = std::function<void(int layer, std::span<const float> hidden)>;

// Appends `tokens` to the sequence and returns the final norm's output [tokens, hidden_size].
std::vector<float> reference_forward(const ModelConfig& config, const ModelWeights& weights, ReferenceState& state,
                                     std::span<const int32_t> tokens, const HiddenObserver& observe = {});

// Logits [rows, vocab] of `hidden` [rows, hidden_size].
std::vector<float> reference_logits(const ModelWeights& weights, std::span<const float> hidden);

}  // namespace lily
