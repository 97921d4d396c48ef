// The ordinary tokens of a vocabulary as a tree of their bytes, so that tokens that begin alike are tried together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar_state.h"
#include "text/token_constraint.h"
#include "text/tokenizer.h"

namespace lily {

// 12 bytes for each distinct prefix of a token: 14 MB and 0.2 s to build for 248,188 synthetic tokens, which share fewer
// prefixes than words do.
class VocabularyTrie {
 public:
  // Longer tokens are left out: no reply needs them, and a walk keeps a state for each byte of a token.
  static constexpr size_t max_token_bytes = 256;

  // In the order of a walk that visits a node before its children, and these by byte. Node 0 is the root, of no bytes.
  struct Node {
    uint32_t end;        // the node after all nodes below this one
    int32_t id = -1;     // of the token that ends here; -1: none
    uint8_t byte = 0;    // of the step from the parent
    uint8_t leaves = 0;  // bit k: some token here or below can leave the k-th free text
  };

  explicit VocabularyTrie(const Tokenizer& tokenizer);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  std::span<const Node> nodes() const { return nodes_; }
  bool has(int32_t id) const { return ordinary_.has(id); }  // the token is in the tree
  std::span<const int32_t> tags() const { return tags_; }   // <tool_call> and </tool_call>, where they are added tokens

  // All tokens that stay within a free text of so many more characters, from between two characters.
  void add_free(FreeState free, TokenSet& ids) const;
  static bool can_leave(const Node& node, FreeText kind) { return node.leaves >> static_cast<int>(kind) & 1; }

 private:
  using Token = std::pair<std::string_view, int32_t>;
  struct FreeTokens {
    TokenSet all;
    std::vector<std::pair<uint32_t, int32_t>> by_size;  // characters, id; ascending
  };

  void add_nodes(std::span<const Token> sorted);
  FreeTokens find_free(FreeText kind, std::span<const Token> tokens) const;

  const Tokenizer& tokenizer_;
  std::vector<Node> nodes_;
  TokenSet ordinary_;
  std::vector<int32_t> tags_;
  FreeTokens in_string_, in_parameter_;
};

}  // namespace lily
