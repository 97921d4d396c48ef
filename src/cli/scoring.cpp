#include "cli/scoring.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace lily::cli {
namespace {

constexpr int64_t max_logits = int64_t{1} << 25;  // floats of one chunk: 128 MiB

double negative_log_likelihood(std::span<const float> logits, int32_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum) - logits[static_cast<size_t>(id)];
}

// The token that a chunk's last row is scored for has not been through the model yet.
Result<void> check_ids(std::span<const int32_t> tokens, int32_t vocab) {
  const auto bad = std::find_if(tokens.begin(), tokens.end(), [=](int32_t id) { return id < 0 || id >= vocab; });
  if (bad == tokens.end()) return {};
  return Error{.where = "token " + std::to_string(bad - tokens.begin()),
               .what = "not in the vocabulary",
               .expected = "an id below " + std::to_string(vocab),
               .got = std::to_string(*bad)};
}

}  // namespace

Result<void> score(Backend& backend, std::span<const int32_t> tokens, const ScoringOptions& options,
                   const OnLogits& on_logits) {
  const auto total = static_cast<int64_t>(tokens.size());
  const auto vocab = static_cast<size_t>(backend.config().vocab_size);
  const auto largest = std::max<int64_t>(max_logits / static_cast<int64_t>(vocab), 1);
  const auto chunk = static_cast<size_t>(std::clamp<int64_t>(options.chunk, 1, largest));
  LILY_TRY(const std::unique_ptr<State> state, backend.make_state(total));
  std::vector<float> logits(std::min(chunk, tokens.size()) * vocab);  // [chunk, vocab]
  for (size_t first = 0; first < tokens.size(); first += chunk) {
    const auto part = tokens.subspan(first, std::min(chunk, tokens.size() - first));
    const std::span<float> rows = std::span(logits).first(part.size() * vocab);
    LILY_CHECK(backend.prefill(*state, part, WantLogits::all, rows));
    LILY_CHECK(on_logits(static_cast<int64_t>(first), rows));
    if (options.progress) options.progress(static_cast<int64_t>(first + part.size()), total);
  }
  return {};
}

Result<Perplexity> perplexity(Backend& backend, std::span<const int32_t> tokens, int64_t window,
                              const ScoringOptions& options) {
  const int64_t context = backend.config().max_position_embeddings;
  const auto length = static_cast<size_t>(window > 0 ? std::min(window, context) : context);
  if (tokens.size() < 2 || length < 2) {
    return Error{.where = "perplexity", .what = "too short a text", .expected = "two tokens or more"};
  }
  const auto vocab = static_cast<size_t>(backend.config().vocab_size);
  LILY_CHECK(check_ids(tokens, backend.config().vocab_size));
  Perplexity sum;
  for (size_t start = 0; start + 1 < tokens.size(); start += length) {
    const auto part = tokens.subspan(start, std::min(length, tokens.size() - start));
    const auto add_rows = [&](int64_t first, std::span<const float> logits) -> Result<void> {
      for (size_t row = 0; row * vocab < logits.size(); ++row) {
        const size_t next = static_cast<size_t>(first) + row + 1;
        if (next == part.size()) break;  // nothing follows the last token
        sum.nll += negative_log_likelihood(logits.subspan(row * vocab, vocab), part[next]);
        ++sum.scored;
      }
      return {};
    };
    LILY_CHECK(score(backend, part, options, add_rows));
  }
  if (!std::isfinite(sum.nll)) return Error{.where = "perplexity", .what = "logits are not finite", .exit_code = 1};
  return sum;
}

}  // namespace lily::cli
