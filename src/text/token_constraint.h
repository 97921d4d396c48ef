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

// A set of ids below `size`.
class TokenSet {
 public:
  explicit TokenSet(int32_t size) : words_(static_cast<size_t>(size + 63) / 64) {}
  void clear() { words_.assign(words_.size(), 0); }
  void add(int32_t id) { words_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  void add(const TokenSet& other) {  // of no larger size
    for (size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool has(int32_t id) const { return words_[static_cast<size_t>(id) / 64] >> (id % 64) & 1; }

 private:
  std::vector<uint64_t> words_;
};

// A text in the making that must match a grammar. Cheap to clone. One thread at a time; clones are independent.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Makes `ids`, of at least the tokenizer's size, the ids that accept() takes. Added tokens are never among them, but for
  // <tool_call> and </tool_call> where a call begins or ends. If there are none, the text is complete. Measured for 248,188 ids on
  // one core: 0.1 ms between values, 0.6 to 1.4 ms inside strings.
  virtual void allowed(TokenSet& ids) = 0;
  // Takes a token's bytes; false: they do not fit, and nothing changes.
  virtual bool accept(int32_t id) = 0;
  virtual bool complete() const = 0;  // the text may end here
  virtual std::unique_ptr<TokenConstraint> clone() const = 0;
};

// The vocabulary by its bytes, for all constraints of a tokenizer. The tokenizer must outlive it.
class VocabularyTrie;
std::shared_ptr<const VocabularyTrie> make_vocabulary_trie(const Tokenizer& tokenizer);

// White space, then JSON: any object (no schema), or what `schema` allows; then white space. What is written is always
// JSON that satisfies the schema, and more narrow than it in these ways, so that a reply ends and parses everywhere:
//
// - Properties come in the schema's order, then additional ones. Where a schema has `properties`, a missing
//   `additionalProperties` means false; a missing `items` after `prefixItems` does too.
// - Without `type`, keywords of one type (`properties`, `maxLength`, ...) imply it; without these, anything goes.
// - At most 64 levels of nesting; 2 newlines and 64 blanks of white space in a row; integers of 18 digits, numbers of 18
//   digits on each side of the point and a 2-digit exponent. A number with a range has no exponent and at most 6
//   decimals and 18 digits. enum and const are written without white space and with the fewest escapes.
// - Keys next to declared ones have no escapes.
//
// Enforced: type (also a list), properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
// minLength, maxLength, minimum, maximum, exclusiveMinimum, exclusiveMaximum (numbers), multipleOf (1, 0.1, ... 0.000001),
// enum, const, anyOf, oneOf (as anyOf), allOf, $ref within the schema, $defs, definitions, nullable. allOf, and anyOf with
// keywords beside it, are merged where that is simple: different keywords, or properties of different names.
// Without effect: annotations (title, description, default, examples, ...), x-..., and format, which JSON Schema
// itself counts among the annotations.
//
// Anything else is an error, whose `where` is the path of the keyword in the schema ("properties.a.pattern"; empty: the
// schema itself), and so are a schema that allows nothing, and one of more than 128 levels, 50,000 values or 256
// alternatives of one value.
Result<std::unique_ptr<TokenConstraint>> json_constraint(std::shared_ptr<const VocabularyTrie> trie,
                                                         const OrderedJson* schema);

// White space, then at least one tool call, of one of these functions, in the template's form; several where `parallel`.
// Parameters may come in any order, each at most once; required ones must all be there before a call ends. A parameter that
// may be a string is any text (an enum: one of its values), every other one is JSON as above, of its schema; of
// its type where the schema is not one that json_constraint takes. Errors: no tool, a tool without a usable name, one
// of more than 255 parameters.
Result<std::unique_ptr<TokenConstraint>> call_constraint(std::shared_ptr<const VocabularyTrie> trie,
                                                         std::span<const OrderedJson> tools, bool parallel);

}  // namespace lily
