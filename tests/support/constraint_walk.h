// Random replies that a TokenConstraint allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "text/token_constraint.h"

namespace lily::test {

inline std::vector<int32_t> allowed_ids(TokenConstraint& constraint, const Tokenizer& tokenizer) {
  TokenSet set(tokenizer.size());
  constraint.allowed(set);
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    if (set.has(id)) ids.push_back(id);
  }
  return ids;
}

// How fast a token ends what is open: a walk that has had its fun takes the best.
inline int haste(std::string_view bytes) {
  static constexpr std::string_view order = "\"}]>0123456789tfn<p";
  const size_t at = order.find(bytes[0]);
  const bool slow = bytes[0] == ' ' || bytes[0] == ',' || bytes[0] == '{' || bytes[0] == '[' || bytes[0] == '\\';
  return (at == order.npos ? slow ? 60 : 40 : static_cast<int>(at)) * 64 + static_cast<int>(bytes.size());
}

// The single byte that goes on with the closing tags of a call; 0 outside calls.
inline char next_of_closing_tags(std::string_view text) {
  static constexpr std::string_view tags = "\n</parameter>\n</function>\n</tool_call>";
  if (text.find("<tool_call>") == text.npos) return 0;
  size_t size = tags.size() - 1;
  while (!text.ends_with(tags.substr(0, size))) --size;
  return tags[size];
}

inline int32_t hasty_choice(const std::vector<int32_t>& ids, const Tokenizer& tokenizer, std::string_view text) {
  const std::string closing(1, next_of_closing_tags(text));
  const auto cost = [&](int32_t id) { return tokenizer.bytes_of(id) == closing ? -1 : haste(tokenizer.bytes_of(id)); };
  return *std::min_element(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return cost(a) < cost(b); });
}

// Tokens at random for `steps`, then to the end by the shortest way. Nothing: no token was allowed before the text was
// complete, an allowed one was not accepted, or the end did not come.
template <class Random>
std::optional<std::string> random_reply(TokenConstraint& constraint, const Tokenizer& tokenizer, Random&& random,
                                        int steps) {
  std::string text;
  for (int step = 0; step < steps + 5000; ++step) {
    if (constraint.complete() && (step >= steps || random() % 4 == 0)) return text;
    const auto ids = allowed_ids(constraint, tokenizer);
    if (ids.empty()) return constraint.complete() ? std::optional(text) : std::nullopt;
    const int32_t id = step < steps ? ids[random() % ids.size()] : hasty_choice(ids, tokenizer, text);
    if (!constraint.accept(id)) return std::nullopt;
    text += tokenizer.bytes_of(id);
  }
  return std::nullopt;
}

// The text, byte by byte. False: it is refused somewhere. Ids 0 to 255 are the bytes.
inline bool accepts_prefix(TokenConstraint& constraint, std::string_view text) {
  for (const char byte : text) {
    if (!constraint.accept(static_cast<uint8_t>(byte))) return false;
  }
  return true;
}

}  // namespace lily::test
