// What a constrained reply may look like: a graph of nodes, compiled once from a JSON schema or from tools.
//
// A node says what one value may be: an object, an array, a string, a number, one of some words, or a choice of other nodes.
// Edges are indices, so recursive schemas are cycles. Two facts keep the automaton (grammar_state.h) out of dead ends:
// every node knows the least nesting its values need (`height`), so a value is begun only where it fits below the
// deepest level; and choices are flattened, so that they lead to values and never to choices.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/word_list.h"

namespace lily {

using NodeId = int32_t;
inline constexpr NodeId no_node = -1;
inline constexpr int max_nesting = 64;      // levels of nesting of a reply
inline constexpr size_t max_choices = 256;  // of one value
inline constexpr uint32_t unlimited = UINT32_MAX;

struct ChoiceNode {
  std::vector<NodeId> nodes;  // none: no value at all
};

struct ObjectNode {
  WordList keys;  // each as JSON with its closing quote, without the opening one; value: the property's index
  std::vector<NodeId> values;           // [property], in the order in which they are written
  std::vector<uint16_t> next_required;  // [property + 1]: the first required one from there on; values.size(): none
  NodeId additional = no_node;          // of keys that are none of these
};

struct ArrayNode {
  std::vector<NodeId> prefix;  // of the first items
  NodeId items = no_node;      // of all others
  uint32_t min = 0, max = unlimited;

  NodeId item(size_t index) const { return index >= max ? no_node : index < prefix.size() ? prefix[index] : items; }
};

struct StringNode {
  uint32_t min = 0, max = unlimited;  // characters
};

// Without a range: any number, with an exponent if it likes. With one: digits only, and exactly the multiples of
// 10^-decimals from low to high, both counted in that unit.
struct NumberNode {
  bool ranged = false;
  int decimals = 0;
  int64_t low = 0, high = 0;
};

// JSON text of fixed values (enum, const, true, false, null), or their plain text.
struct WordsNode {
  WordList words;
};

// Any UTF-8 text up to the end of a call's parameter.
struct TextNode {};

// One call: tags are "<parameter=NAME>\n" for each parameter, and last the end of the call.
struct FunctionNode {
  static constexpr size_t max_parameters = 255;
  WordList tags;               // value: the parameter's index; values.size(): the end
  std::vector<NodeId> values;  // [parameter]
  std::vector<bool> required;  // [parameter]
};

// The root of a reply of tool calls.
struct CallsNode {
  WordList openings;              // "<tool_call>\n<function=NAME>\n"; value: the function's index
  std::vector<NodeId> functions;  // FunctionNode
  bool parallel = false;
};

// The root of a reply that is one JSON value.
struct DocumentNode {
  NodeId value = no_node;
};

struct Node {
  std::variant<ChoiceNode, ObjectNode, ArrayNode, StringNode, NumberNode, WordsNode, TextNode, FunctionNode, CallsNode,
               DocumentNode>
      is;
  int height = max_nesting + 1;  // levels that the flattest value needs; more than max_nesting: there is none
};

struct Grammar {
  std::vector<Node> nodes;
  NodeId root = no_node;

  NodeId add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<NodeId>(nodes.size() - 1);
  }
  const Node& at(NodeId id) const { return nodes[static_cast<size_t>(id)]; }
};

// The nodes of any JSON value, and of any value of one type ("object", "array", ...; no_node: there is no such type).
struct AnyJson {
  explicit AnyJson(Grammar& grammar);
  NodeId of_type(std::string_view type) const;
  NodeId any, object, array, string, number, integer, boolean, null;
};

// Flattens choices and computes heights. False: a choice of more than max_choices.
bool finish_grammar(Grammar& grammar);

}  // namespace lily
