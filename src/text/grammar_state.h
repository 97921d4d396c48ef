// Where a reply stands in a grammar: a pushdown automaton over bytes.
//
// - A frame is one value in the making (object, array, string, ...); a stack is the values around the current byte, the
//   root first. The top frame gets each byte. It takes it, refuses it, or has ended (numbers and words do not know their end
//   before the byte after it): then it is popped, and the frame below gets the same byte.
// - A value's frame is pushed when its first byte comes. Where a choice has several nodes that begin with this byte,
//   the stack is copied, so a state is a set of stacks, one for each way to read the text so far. Most have one.
// - No way is a dead end: a value is begun only where the least nesting it needs still fits, a comma only where something
//   may follow, a digit only where it leads to a number of the range. So some byte may always follow, or the text may end.
// - Stacks are plain values of at most max_nesting small frames; copying a state copies a few hundred bytes.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "text/grammar.h"
#include "text/number_state.h"
#include "text/string_state.h"

namespace lily {

// Texts in which any character may come, so that most of the vocabulary may. `room`: characters that still fit.
enum class FreeText { none, json_string, parameter };
struct FreeState {
  FreeText kind = FreeText::none;
  uint32_t room = 0;
};

struct Frame {
  enum class Phase : uint8_t {
    first,   // object, array: after the opening bracket; calls: before a call
    item,    // array: an item must come; document: the value must come
    key,     // object: within a key
    colon,   // object: after a key
    member,  // object: the key's value must come; function: the parameter's value must come
    next,    // object, array: after a value; document: the end
    comma,   // object: a key must come
    tag,     // calls: within an opening; function: within a tag
    close,   // function: within the closing tag of a parameter
    running  // all other nodes
  };
  NodeId node = no_node;
  Phase phase = Phase::running;
  StringState text = StringState::plain;  // string, text, object key
  bool undeclared = false;                // object: the key may still be an additional one
  WordList::Cursor cursor;                // words, object key, tags; object, function: low is the current property
  uint32_t count = 0;  // characters, items, calls; object: the next property; text, close: bytes of the tag
  NumberState number;
  bool operator==(const Frame&) const = default;
};

struct Stack {
  std::vector<Frame> frames;
  std::bitset<FunctionNode::max_parameters> seen;  // parameters of the current call
  uint8_t newlines = 0, blanks = 0;                // of the current run of white space
  bool operator==(const Stack&) const = default;
};

class GrammarState {
 public:
  GrammarState() = default;  // of no grammar: accepts nothing
  explicit GrammarState(const Grammar& grammar);

  // Becomes `from` and one byte. False: the byte does not fit, and the state is lost. `in_tag`: the byte is one of an added
  // token, which stands for a tag and never for text. `from` is another state of the same grammar.
  bool advance(const Grammar& grammar, const GrammarState& from, uint8_t byte, bool in_tag = false);

  bool complete(const Grammar& grammar) const;  // the text may end here
  // Of the way with the most room; none if no way is between two characters of such a text.
  FreeState free_text(const Grammar& grammar) const;
  // Every way is.
  bool all_free(const Grammar& grammar) const;

 private:
  std::vector<Stack> stacks_;
};

}  // namespace lily
