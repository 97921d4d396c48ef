#include "text/grammar.h"

#include <algorithm>
#include <utility>

#include "text/number_state.h"

namespace lily {
namespace {

constexpr size_t max_choice_steps = 1024;  // choices of choices, and references to references

// All values that a choice leads to, or more than max_choices; cycles of choices lead nowhere.
std::vector<NodeId> flatten(const Grammar& grammar, NodeId choice, std::vector<NodeId>& seen_by) {
  std::vector<NodeId> values, open = {choice};
  for (size_t steps = 0; !open.empty(); ++steps) {
    if (steps > max_choice_steps || values.size() > max_choices) return std::vector<NodeId>(max_choices + 1, no_node);
    const NodeId id = open.back();
    open.pop_back();
    if (std::exchange(seen_by[static_cast<size_t>(id)], choice) == choice) continue;
    const auto* nested = std::get_if<ChoiceNode>(&grammar.at(id).is);
    if (!nested) {
      values.push_back(id);
    } else {
      open.insert(open.end(), nested->nodes.rbegin(), nested->nodes.rend());
    }
  }
  return values;
}

int height_of(const Grammar& grammar, const Node& node) {
  const auto height = [&](NodeId id) { return id == no_node ? max_nesting + 1 : grammar.at(id).height; };
  int below = 0;
  if (const auto* choice = std::get_if<ChoiceNode>(&node.is)) {
    int least = max_nesting + 1;
    for (const NodeId id : choice->nodes) least = std::min(least, height(id));
    return least;
  }
  if (const auto* object = std::get_if<ObjectNode>(&node.is)) {
    for (size_t i = 0; i < object->values.size(); ++i) {
      if (object->next_required[i] == i) below = std::max(below, height(object->values[i]));
    }
  } else if (const auto* array = std::get_if<ArrayNode>(&node.is)) {
    if (array->min > array->max) return max_nesting + 1;
    for (size_t i = 0; i < std::min<size_t>(array->min, array->prefix.size() + 1); ++i) {
      below = std::max(below, height(array->item(i)));
    }
  } else if (const auto* string = std::get_if<StringNode>(&node.is)) {
    if (string->min > string->max) return max_nesting + 1;
  } else if (const auto* number = std::get_if<NumberNode>(&node.is)) {
    if (number->ranged && number->low > number->high) return max_nesting + 1;
  } else if (const auto* words = std::get_if<WordsNode>(&node.is)) {
    if (words->words.empty()) return max_nesting + 1;
  }
  return std::min(below, max_nesting) + 1;
}

}  // namespace

bool finish_grammar(Grammar& grammar) {
  std::vector<NodeId> seen_by(grammar.nodes.size(), no_node);
  std::vector<ChoiceNode> flat(grammar.nodes.size());
  for (size_t i = 0; i < grammar.nodes.size(); ++i) {
    if (!std::holds_alternative<ChoiceNode>(grammar.nodes[i].is)) continue;
    flat[i].nodes = flatten(grammar, static_cast<NodeId>(i), seen_by);
    if (flat[i].nodes.size() > max_choices) return false;
  }
  for (size_t i = 0; i < grammar.nodes.size(); ++i) {
    if (auto* choice = std::get_if<ChoiceNode>(&grammar.nodes[i].is)) *choice = std::move(flat[i]);
  }
  for (bool changed = true; changed;) {  // heights only fall, so this ends
    changed = false;
    for (Node& node : grammar.nodes) {
      const int height = height_of(grammar, node);
      changed |= height < node.height;
      node.height = std::min(node.height, height);
    }
  }
  return true;
}

AnyJson::AnyJson(Grammar& grammar) {
  any = grammar.add({ChoiceNode{}});
  object = grammar.add({ObjectNode{{}, {}, {0}, any}});
  array = grammar.add({ArrayNode{{}, any}});
  string = grammar.add({StringNode{}});
  number = grammar.add({NumberNode{}});
  integer = grammar.add({any_integer()});
  boolean = grammar.add({WordsNode{WordList({"true", "false"})}});
  null = grammar.add({WordsNode{WordList({"null"})}});
  grammar.nodes[static_cast<size_t>(any)].is = ChoiceNode{{object, array, string, number, boolean, null}};
}

NodeId AnyJson::of_type(std::string_view type) const {
  if (type == "object") return object;
  if (type == "array") return array;
  if (type == "string") return string;
  if (type == "number") return number;
  if (type == "integer") return integer;
  if (type == "boolean") return boolean;
  return type == "null" ? null : no_node;
}

}  // namespace lily
