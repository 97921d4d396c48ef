#include "text/token_constraint.h"

#include <algorithm>
#include <utility>

#include "text/call_grammar.h"
#include "text/grammar_state.h"
#include "text/json_schema.h"
#include "text/vocabulary_trie.h"

namespace lily {
namespace {

class GrammarConstraint : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<const VocabularyTrie> trie, std::shared_ptr<const Grammar> grammar,
                    const GrammarState& state)
      : trie_(std::move(trie)), grammar_(std::move(grammar)), states_(VocabularyTrie::max_token_bytes + 1) {
    states_[0] = state;
  }

  void allowed(TokenSet& ids) override;
  bool accept(int32_t id) override;
  bool complete() const override { return states_[0].complete(*grammar_); }
  std::unique_ptr<TokenConstraint> clone() const override {
    return std::make_unique<GrammarConstraint>(trie_, grammar_, states_[0]);
  }

 private:
  bool try_bytes(std::string_view bytes, bool tag);

  std::shared_ptr<const VocabularyTrie> trie_;
  std::shared_ptr<const Grammar> grammar_;
  std::vector<GrammarState> states_;  // [bytes of a token being tried]; the first is where the text stands
};

// Leaves the state after so many bytes in states_[bytes.size()].
bool GrammarConstraint::try_bytes(std::string_view bytes, bool tag) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!states_[i + 1].advance(*grammar_, states_[i], static_cast<uint8_t>(bytes[i]), tag)) return false;
  }
  return true;
}

bool GrammarConstraint::accept(int32_t id) {
  const auto tags = trie_->tags();
  const bool tag = std::find(tags.begin(), tags.end(), id) != tags.end();
  if (!tag && (id < 0 || id >= trie_->tokenizer().size() || !trie_->has(id))) return false;
  const std::string_view bytes = trie_->tokenizer().bytes_of(id);
  if (!try_bytes(bytes, tag)) return false;
  std::swap(states_[0], states_[bytes.size()]);
  return true;
}

// In a free text nearly all tokens are known to fit. Those that may leave it are tried, and those that begin another way to
// read the text: while there is such a way, nothing is passed over. A way comes to stand in a free text only by a byte
// that can leave one, so what is passed over has no more ways to fit than at the start.
void GrammarConstraint::allowed(TokenSet& ids) {
  ids.clear();
  const FreeState free = states_[0].free_text(*grammar_);
  trie_->add_free(free, ids);
  const auto nodes = trie_->nodes();
  std::vector<uint32_t> ends = {nodes[0].end};  // [depth]: the node after those below
  std::vector<bool> pruned = {free.kind != FreeText::none && states_[0].all_free(*grammar_)};
  for (uint32_t i = 1; i < nodes.size();) {
    while (i == ends.back()) {
      ends.pop_back();
      pruned.pop_back();
    }
    const VocabularyTrie::Node& node = nodes[i];
    const size_t depth = ends.size() - 1;
    if ((pruned[depth] && !VocabularyTrie::can_leave(node, free.kind)) ||
        !states_[depth + 1].advance(*grammar_, states_[depth], node.byte)) {
      i = node.end;
      continue;
    }
    if (node.id >= 0) ids.add(node.id);
    ends.push_back(node.end);
    pruned.push_back(free.kind != FreeText::none && states_[depth + 1].all_free(*grammar_));
    ++i;
  }
  for (const int32_t tag : trie_->tags()) {
    if (try_bytes(trie_->tokenizer().bytes_of(tag), true)) ids.add(tag);
  }
}

std::unique_ptr<TokenConstraint> make(std::shared_ptr<const VocabularyTrie> trie, Grammar grammar) {
  auto shared = std::make_shared<const Grammar>(std::move(grammar));
  const GrammarState start(*shared);
  return std::make_unique<GrammarConstraint>(std::move(trie), std::move(shared), start);
}

}  // namespace

std::shared_ptr<const VocabularyTrie> make_vocabulary_trie(const Tokenizer& tokenizer) {
  return std::make_shared<const VocabularyTrie>(tokenizer);
}

Result<std::unique_ptr<TokenConstraint>> json_constraint(std::shared_ptr<const VocabularyTrie> trie,
                                                         const OrderedJson* schema) {
  LILY_TRY(Grammar grammar, json_grammar(schema));
  return make(std::move(trie), std::move(grammar));
}

Result<std::unique_ptr<TokenConstraint>> call_constraint(std::shared_ptr<const VocabularyTrie> trie,
                                                         std::span<const OrderedJson> tools, bool parallel) {
  LILY_TRY(Grammar grammar, call_grammar(tools, parallel));
  return make(std::move(trie), std::move(grammar));
}

}  // namespace lily
