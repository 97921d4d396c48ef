// Which tokens may come next, so that a reply is JSON of a schema or a call of a certain function.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace lily {

// A set of ids.
class TokenSet {
 public:
  explicit TokenSet(int32_t size) : words_(static_cast<size_t>(size + 63) / 64) {}
  void clear() { words_.assign(words_.size(), 0); }
  void add(int32_t id) { words_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  bool has(int32_t id) const { return words_[static_cast<size_t>(id) / 64] >> (id % 64) & 1; }

 private:
  std::vector<uint64_t> words_;
};

// A text in the making that must match a grammar. Cheap to copy.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // The ids whose bytes may come next. Added tokens are never among them, but for those that the grammar names.
  virtual void allowed(TokenSet& ids) = 0;
  // Takes a token's bytes; false: they do not fit, and nothing changes.
  virtual bool accept(int32_t id) = 0;
  virtual bool complete() const = 0;  // the text may end here
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
};

// The vocabulary by its bytes, for all constraints of a tokenizer. The tokenizer must outlive it.
class VocabularyTrie;
std::shared_ptr<const VocabularyTrie> make_vocabulary_trie(const Tokenizer& tokenizer);

// White space, then JSON: any object (empty schema pointer), or what `schema` allows. The error names the keyword that is
// not supported, by its path.
Result<std::unique_ptr<TokenConstraint>> json_constraint(std::shared_ptr<const VocabularyTrie> trie,
                                                         const OrderedJson* schema);

// White space, then at least one tool call, of one of these functions, in the template's form; several where `parallel`.
// Parameters may come in any order; required ones must all be there before a call ends.
Result<std::unique_ptr<TokenConstraint>> call_constraint(std::shared_ptr<const VocabularyTrie> trie,
                                                         std::span<const OrderedJson> tools, bool parallel);

}  // namespace lily
