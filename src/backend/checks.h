// Checks of the seam's arguments that every backend shares.
#pragma once

#include <span>

#include "backend/backend.h"

namespace lily {

// The context must be at least one token and at most the model's.
Result<void> check_capacity(const ModelConfig& config, int64_t max_tokens);

// Every id within the vocabulary, and room for all of them.
Result<void> check_tokens(const ModelConfig& config, const State& state, std::span<const int32_t> tokens);

// Floats that prefill fills.
inline size_t logits_size(const ModelConfig& config, WantLogits want, size_t tokens) {
  const size_t rows = want == WantLogits::none ? 0 : want == WantLogits::last ? 1 : tokens;
  return rows * config.vocab_size;
}

}  // namespace lily
