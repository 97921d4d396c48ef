#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

namespace lily {
namespace {

uint8_t first_byte(const AddedToken& token) { return static_cast<uint8_t>(token.content.front()); }

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    if (first_byte(a) != first_byte(b)) return first_byte(a) < first_byte(b);
    return a.content.size() > b.content.size();
  });
  for (const AddedToken& token : tokens_) ++starts_[first_byte(token) + 1u];
  for (size_t byte = 0; byte < 256; ++byte) starts_[byte + 1] += starts_[byte];
}

std::span<const AddedToken> AddedTokens::beginning_with(char first) const {
  const auto byte = static_cast<uint8_t>(first);
  return std::span(tokens_).subspan(starts_[byte], starts_[byte + 1u] - starts_[byte]);
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text) const {
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (const AddedToken& token : beginning_with(text[begin])) {
      if (text.substr(begin).starts_with(token.content)) return Match{begin, token.content.size(), token.id};
    }
  }
  return std::nullopt;
}

std::optional<int32_t> AddedTokens::id_of(std::string_view content) const {
  if (content.empty()) return std::nullopt;
  for (const AddedToken& token : beginning_with(content.front())) {
    if (token.content == content) return token.id;
  }
  return std::nullopt;
}

}  // namespace lily
