#include "backend/checks.h"

#include <fmt/format.h>

namespace lily {

Result<void> check_capacity(const ModelConfig& config, int64_t max_tokens) {
  if (max_tokens >= 1 && max_tokens <= config.max_position_embeddings) return {};
  return Error{.where = "context length",
               .what = "out of range",
               .expected = fmt::format("1 to {} tokens", config.max_position_embeddings),
               .got = std::to_string(max_tokens)};
}

Result<void> check_tokens(const ModelConfig& config, const State& state, std::span<const int32_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < config.vocab_size) continue;
    return Error{.where = fmt::format("token {}", state.position() + static_cast<int64_t>(i)),
                 .what = "id outside the vocabulary",
                 .expected = fmt::format("0 to {}", config.vocab_size - 1),
                 .got = std::to_string(tokens[i])};
  }
  if (state.position() + static_cast<int64_t>(tokens.size()) <= state.max_tokens()) return {};
  return Error{.where = "context",
               .what = "full",
               .expected = fmt::format("at most {} tokens", state.max_tokens()),
               .got = std::to_string(state.position() + static_cast<int64_t>(tokens.size()))};
}

}  // namespace lily
