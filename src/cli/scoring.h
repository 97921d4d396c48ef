// A model's logits at every position of a text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "backend/backend.h"
#include "base/result.h"

namespace lily::cli {

struct ScoringOptions {
  int64_t chunk = 512;
  std::function<void(int64_t done, int64_t total)> progress;
};

// Called with the logits [n, vocab] of positions first, first + 1, ...
using OnLogits = std::function<Result<void>(int64_t first, std::span<const float> logits)>;

// One pass over `tokens` with a fresh state. Chunks are cut shorter where the logits would not fit 128 MiB.
Result<void> score(Backend& backend, std::span<const int32_t> tokens, const ScoringOptions& options,
                   const OnLogits& on_logits);

struct Perplexity {
  int64_t scored = 0;  // every token but the first of each window
  double nll = 0;      // summed negative log-likelihood, in nats

  double mean_nll() const { return nll / static_cast<double>(scored); }
};

// Windows of at most `window` tokens (0: the model's context), each with a fresh state. Needs two tokens.
Result<Perplexity> perplexity(Backend& backend, std::span<const int32_t> tokens, int64_t window,
                              const ScoringOptions& options);

}  // namespace lily::cli
