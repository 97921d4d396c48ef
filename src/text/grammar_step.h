// One byte for one stack of a GrammarState.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/grammar_state.h"

namespace lily {

inline constexpr std::string_view parameter_end = "\n</parameter>\n";

class GrammarStep {
 public:
  // `forks` gets the other ways to read the byte.
  GrammarStep(const Grammar& grammar, Stack& stack, std::vector<Stack>& forks, bool in_tag)
      : grammar_(grammar), stack_(stack), forks_(forks), in_tag_(in_tag) {}

  bool take(uint8_t byte);                 // false: it does not fit
  bool popped() const { return popped_; }  // a frame ended: stacks may have become equal

 private:
  enum class Fate { refused, taken, ended };

  Fate visit(uint8_t byte);
  Fate in_document(uint8_t byte);
  Fate in_object(const ObjectNode& node, uint8_t byte);
  Fate in_key(const ObjectNode& node, uint8_t byte);
  Fate in_array(const ArrayNode& node, uint8_t byte);
  Fate in_string(const StringNode& node, uint8_t byte);
  Fate in_words(const WordsNode& node, uint8_t byte);
  Fate in_number(const NumberNode& node, uint8_t byte);
  Fate in_text(uint8_t byte);
  Fate in_calls(const CallsNode& node, uint8_t byte);
  Fate in_function(const FunctionNode& node, uint8_t byte);
  Fate in_tag(const FunctionNode& node, uint8_t byte);

  Frame& top() { return stack_.frames.back(); }
  bool fits(NodeId node) const;
  bool may_use(const ObjectNode& node, size_t property) const;
  bool may_add(const ObjectNode& node) const;
  bool may_have_key(const ObjectNode& node) const;
  bool tag_fits(const FunctionNode& node, size_t tag) const;
  Fate space(uint8_t byte);
  Fate pop();
  Fate begin_value(NodeId id, Frame::Phase then, uint8_t byte);
  bool begins(NodeId id, uint8_t byte, Frame& frame) const;
  void begin_parameter(NodeId value);

  const Grammar& grammar_;
  Stack& stack_;
  std::vector<Stack>& forks_;
  bool in_tag_;
  bool popped_ = false;
};

}  // namespace lily
