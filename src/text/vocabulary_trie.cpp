#include "text/vocabulary_trie.h"

#include <algorithm>

#include "text/string_state.h"

namespace lily {
namespace {

// The bytes that can lead out of a free text. '>' ends a parameter's closing tag.
bool can_leave(FreeText kind, uint8_t byte) {
  if (kind == FreeText::json_string) return byte == '"' || byte == '\\';
  return byte == '\n' || byte == '>';
}

constexpr FreeText kinds[] = {FreeText::json_string, FreeText::parameter};

uint8_t leaves_by(uint8_t byte) {
  uint8_t leaves = 0;
  for (const FreeText kind : kinds) leaves |= static_cast<uint8_t>(can_leave(kind, byte) << static_cast<int>(kind));
  return leaves;
}

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + std::min(a.size(), b.size()), b.begin()).first -
                             a.begin());
}

uint64_t first_bytes(std::string_view bytes) {
  uint64_t key = 0;
  for (size_t i = 0; i < 8; ++i) key = key << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
  return key;
}

}  // namespace

VocabularyTrie::VocabularyTrie(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      ordinary_(tokenizer.size()),
      in_string_{TokenSet(tokenizer.size()), {}},
      in_parameter_{TokenSet(tokenizer.size()), {}} {
  for (const char* tag : {"<tool_call>", "</tool_call>"}) {
    if (const auto id = tokenizer.added_token(tag)) tags_.push_back(*id);
  }
  std::vector<std::pair<uint64_t, Token>> keyed;  // comparing eight bytes at once makes the sort three times faster
  keyed.reserve(static_cast<size_t>(tokenizer.size()));
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string_view bytes = tokenizer.bytes_of(id);
    if (bytes.empty() || bytes.size() > max_token_bytes || tokenizer.added_token(bytes) == id) continue;
    ordinary_.add(id);
    keyed.push_back({first_bytes(bytes), {bytes, id}});
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<Token> sorted;
  sorted.reserve(keyed.size());
  for (const auto& [key, token] : keyed) sorted.push_back(token);
  add_nodes(sorted);
  in_string_ = find_free(FreeText::json_string, sorted);
  in_parameter_ = find_free(FreeText::parameter, sorted);
}

void VocabularyTrie::add_nodes(std::span<const Token> sorted) {
  std::vector<uint32_t> path = {0};        // nodes from the root to the last token
  std::vector<uint8_t> path_leaves = {0};  // what the bytes up to there can leave
  std::string_view last;
  nodes_.push_back({});
  const auto cut = [&](size_t length) {
    while (path.size() > length + 1) {
      Node& node = nodes_[path.back()];
      node.end = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
      path_leaves.pop_back();
      nodes_[path.back()].leaves |= node.leaves;
    }
  };
  for (const auto& [bytes, id] : sorted) {
    const size_t shared = common_prefix(last, bytes);
    cut(shared);
    for (size_t i = shared; i < bytes.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      path_leaves.push_back(path_leaves.back() | leaves_by(byte));
      nodes_.push_back({0, -1, byte, 0});
    }
    nodes_.back().id = id;
    nodes_.back().leaves = path_leaves.back();
    last = bytes;
  }
  cut(0);
  nodes_[0].end = static_cast<uint32_t>(nodes_.size());
  nodes_.shrink_to_fit();
}

VocabularyTrie::FreeTokens VocabularyTrie::find_free(FreeText kind, std::span<const Token> tokens) const {
  FreeTokens free{TokenSet(tokenizer_.size()), {}};
  for (const auto& [bytes, id] : tokens) {
    StringState state = StringState::plain;
    uint32_t characters = 0;
    for (const char c : bytes) {
      const auto byte = static_cast<uint8_t>(c);
      if (lily::can_leave(kind, byte)) state = StringState::bad;
      characters += state == StringState::plain;
      state = kind == FreeText::json_string ? string_next(state, byte) : utf8_next(state, byte);
      if (state == StringState::bad) break;
    }
    if (state == StringState::bad) continue;
    free.all.add(id);
    free.by_size.push_back({characters, id});
  }
  std::sort(free.by_size.begin(), free.by_size.end());
  return free;
}

void VocabularyTrie::add_free(FreeState free, TokenSet& ids) const {
  if (free.kind == FreeText::none) return;
  const FreeTokens& tokens = free.kind == FreeText::json_string ? in_string_ : in_parameter_;
  if (tokens.by_size.empty() || tokens.by_size.back().first <= free.room) {
    ids.add(tokens.all);
    return;
  }
  for (const auto& [characters, id] : tokens.by_size) {
    if (characters > free.room) break;
    ids.add(id);
  }
}

}  // namespace lily
