#include "text/grammar_step.h"

namespace lily {
namespace {

using Phase = Frame::Phase;

// White space in a row. A model that has nothing to say would go on for ever.
constexpr int max_newlines = 2, max_blanks = 64;

bool is_space(uint8_t byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

}  // namespace

bool GrammarStep::take(uint8_t byte) {
  if (!is_space(byte)) stack_.newlines = stack_.blanks = 0;
  Fate fate = Fate::ended;
  while (fate == Fate::ended) fate = visit(byte);
  return fate == Fate::taken;
}

GrammarStep::Fate GrammarStep::visit(uint8_t byte) {
  const auto& node = grammar_.at(top().node).is;
  if (const auto* string = std::get_if<StringNode>(&node)) return in_string(*string, byte);
  if (std::holds_alternative<TextNode>(node)) return in_text(byte);
  if (const auto* object = std::get_if<ObjectNode>(&node)) return in_object(*object, byte);
  if (const auto* array = std::get_if<ArrayNode>(&node)) return in_array(*array, byte);
  if (const auto* words = std::get_if<WordsNode>(&node)) return in_words(*words, byte);
  if (const auto* number = std::get_if<NumberNode>(&node)) return in_number(*number, byte);
  if (const auto* function = std::get_if<FunctionNode>(&node)) return in_function(*function, byte);
  if (const auto* calls = std::get_if<CallsNode>(&node)) return in_calls(*calls, byte);
  return in_document(byte);
}

GrammarStep::Fate GrammarStep::in_document(uint8_t byte) {
  if (is_space(byte)) return space(byte);
  if (top().phase != Phase::item) return Fate::refused;
  return begin_value(std::get<DocumentNode>(grammar_.at(top().node).is).value, Phase::next, byte);
}

GrammarStep::Fate GrammarStep::in_object(const ObjectNode& node, uint8_t byte) {
  Frame& frame = top();
  if (frame.phase == Phase::key) return in_key(node, byte);
  if (frame.phase == Phase::colon) {
    frame.phase = Phase::member;
    return byte == ':' ? Fate::taken : Fate::refused;
  }
  if (is_space(byte)) return space(byte);
  switch (frame.phase) {
    case Phase::member: {
      const size_t property = frame.cursor.low, count = node.values.size();
      frame.count = static_cast<uint32_t>(property < count ? property + 1 : count);
      frame.cursor = {};
      return begin_value(property < count ? node.values[property] : node.additional, Phase::next, byte);
    }
    case Phase::next:
      if (byte == ',' && may_have_key(node)) {
        frame.phase = Phase::comma;
        return Fate::taken;
      }
      [[fallthrough]];
    case Phase::first:
      if (byte == '}') return node.next_required[frame.count] == node.values.size() ? pop() : Fate::refused;
      if (frame.phase == Phase::next) return Fate::refused;
      [[fallthrough]];
    default:
      if (byte != '"' || !may_have_key(node)) return Fate::refused;
      frame.phase = Phase::key;
      frame.cursor = node.keys.begin();
      frame.undeclared = may_add(node);
      return Fate::taken;
  }
}

// A key is a declared one, letter by letter, or any other. Both are followed until one of them is out.
GrammarStep::Fate GrammarStep::in_key(const ObjectNode& node, uint8_t byte) {
  if (in_tag_) return Fate::refused;
  Frame& frame = top();
  const auto end_with = [&](size_t property) {
    frame.cursor = {static_cast<uint16_t>(property), 0, 0};
    frame.phase = Phase::colon;
    frame.undeclared = false;
    frame.text = StringState::plain;
    return Fate::taken;
  };
  if (!frame.cursor.empty()) frame.cursor = node.keys.next(frame.cursor, byte);
  if (node.keys.whole(frame.cursor)) {
    const size_t property = node.keys.value(frame.cursor.low);
    return may_use(node, property) ? end_with(property) : Fate::refused;
  }
  if (frame.undeclared && frame.text == StringState::plain && byte == '"') return end_with(node.values.size());
  if (frame.undeclared) {
    // An escape could spell a declared key in another way.
    const bool hidden = byte == '\\' && !node.keys.empty();
    frame.text = hidden ? StringState::bad : string_next(frame.text, byte);
    frame.undeclared = frame.text != StringState::bad;
    if (frame.undeclared) return Fate::taken;
    frame.text = StringState::plain;
  }
  for (size_t i = frame.cursor.low; i < frame.cursor.high; ++i) {
    if (may_use(node, node.keys.value(i))) return Fate::taken;
  }
  return Fate::refused;
}

GrammarStep::Fate GrammarStep::in_array(const ArrayNode& node, uint8_t byte) {
  Frame& frame = top();
  if (is_space(byte)) return space(byte);
  if (byte == ']' && frame.phase != Phase::item) return frame.count >= node.min ? pop() : Fate::refused;
  const NodeId item = node.item(frame.count);
  if (!fits(item)) return Fate::refused;
  if (frame.phase == Phase::next) {
    frame.phase = Phase::item;
    return byte == ',' ? Fate::taken : Fate::refused;
  }
  if (frame.count != unlimited - 1) ++frame.count;
  return begin_value(item, Phase::next, byte);
}

GrammarStep::Fate GrammarStep::in_string(const StringNode& node, uint8_t byte) {
  Frame& frame = top();
  if (in_tag_) return Fate::refused;
  if (frame.text == StringState::plain) {
    if (byte == '"') return frame.count >= node.min ? pop() : Fate::refused;
    if (frame.count >= node.max) return Fate::refused;
    if (frame.count != unlimited - 1) ++frame.count;
  }
  frame.text = string_next(frame.text, byte);
  return frame.text == StringState::bad ? Fate::refused : Fate::taken;
}

GrammarStep::Fate GrammarStep::in_words(const WordsNode& node, uint8_t byte) {
  Frame& frame = top();
  if (in_tag_) return Fate::refused;
  const auto next = node.words.next(frame.cursor, byte);
  if (next.empty()) {
    if (!node.words.whole(frame.cursor)) return Fate::refused;
    pop();
    return Fate::ended;
  }
  frame.cursor = next;
  return Fate::taken;
}

GrammarStep::Fate GrammarStep::in_number(const NumberNode& node, uint8_t byte) {
  const NumberState before = top().number;
  if (number_next(node, top().number, byte)) return Fate::taken;
  if (!number_whole(node, before)) return Fate::refused;
  pop();
  return Fate::ended;
}

// Looks for the closing tag, whose first byte occurs in it only once before its last: a mismatch restarts the search.
GrammarStep::Fate GrammarStep::in_text(uint8_t byte) {
  Frame& frame = top();
  if (in_tag_) return Fate::refused;
  frame.text = utf8_next(frame.text, byte);
  if (frame.text == StringState::bad) return Fate::refused;
  if (byte == static_cast<uint8_t>(parameter_end[frame.count])) {
    ++frame.count;
  } else {
    frame.count = byte == '\n' ? 1 : 0;
  }
  if (frame.count + 1 < parameter_end.size()) return Fate::taken;
  pop();
  top().count = static_cast<uint32_t>(parameter_end.size() - 1);
  return Fate::taken;
}

GrammarStep::Fate GrammarStep::in_calls(const CallsNode& node, uint8_t byte) {
  Frame& frame = top();
  if (frame.phase == Phase::first) {
    if (is_space(byte)) return in_tag_ ? Fate::refused : space(byte);
    if (frame.count > 0 && !node.parallel) return Fate::refused;
    frame.phase = Phase::tag;
    frame.cursor = node.openings.begin();
  }
  frame.cursor = node.openings.next(frame.cursor, byte);
  if (!node.openings.whole(frame.cursor)) return frame.cursor.empty() ? Fate::refused : Fate::taken;
  Frame call{node.functions[node.openings.value(frame.cursor.low)], Phase::tag};
  call.cursor = std::get<FunctionNode>(grammar_.at(call.node).is).tags.begin();
  frame.phase = Phase::first;
  frame.cursor = {};
  frame.count = 1;
  stack_.seen.reset();
  stack_.frames.push_back(call);
  return Fate::taken;
}

GrammarStep::Fate GrammarStep::in_function(const FunctionNode& node, uint8_t byte) {
  Frame& frame = top();
  if (frame.phase == Phase::tag) return in_tag(node, byte);
  if (in_tag_) return Fate::refused;
  if (frame.phase == Phase::member) {
    const NodeId value = node.values[frame.cursor.low];
    frame.cursor = {};
    return begin_value(value, Phase::close, byte);
  }
  if (byte != static_cast<uint8_t>(parameter_end[frame.count])) return Fate::refused;
  if (++frame.count == parameter_end.size()) {
    frame.count = 0;
    frame.phase = Phase::tag;
    frame.cursor = node.tags.begin();
  }
  return Fate::taken;
}

GrammarStep::Fate GrammarStep::in_tag(const FunctionNode& node, uint8_t byte) {
  Frame& frame = top();
  frame.cursor = node.tags.next(frame.cursor, byte);
  if (node.tags.whole(frame.cursor)) {
    const size_t tag = node.tags.value(frame.cursor.low);
    if (!tag_fits(node, tag)) return Fate::refused;
    if (tag == node.values.size()) return pop();
    stack_.seen.set(tag);
    frame.cursor.low = static_cast<uint16_t>(tag);
    begin_parameter(node.values[tag]);
    return Fate::taken;
  }
  for (size_t i = frame.cursor.low; i < frame.cursor.high; ++i) {
    if (tag_fits(node, node.tags.value(i))) return Fate::taken;
  }
  return Fate::refused;
}

// Text has no first byte of its own, and may be empty: its frame is there from the start. "\n</parameter>" may come at
// once, where the line end after the tag is the one before the closing tag.
void GrammarStep::begin_parameter(NodeId value) {
  const auto& node = grammar_.at(value).is;
  if (const auto* words = std::get_if<WordsNode>(&node)) {
    top().phase = Phase::close;
    Frame frame{value};
    frame.cursor = words->words.begin();
    stack_.frames.push_back(frame);
  } else if (std::holds_alternative<TextNode>(node)) {
    top().phase = Phase::close;
    Frame frame{value};
    frame.count = 1;
    stack_.frames.push_back(frame);
  } else {
    top().phase = Phase::member;
  }
}

bool GrammarStep::tag_fits(const FunctionNode& node, size_t tag) const {
  if (tag < node.values.size()) return !stack_.seen[tag];
  for (size_t i = 0; i < node.values.size(); ++i) {
    if (node.required[i] && !stack_.seen[i]) return false;
  }
  return true;
}

bool GrammarStep::fits(NodeId node) const {
  return node != no_node && stack_.frames.size() + static_cast<size_t>(grammar_.at(node).height) <= max_nesting + 1;
}

// Properties come in their order, and none that is required is passed over.
bool GrammarStep::may_use(const ObjectNode& node, size_t property) const {
  const size_t next = stack_.frames.back().count;
  return property >= next && property <= node.next_required[next] && fits(node.values[property]);
}

bool GrammarStep::may_add(const ObjectNode& node) const {
  return node.next_required[stack_.frames.back().count] == node.values.size() && fits(node.additional);
}

bool GrammarStep::may_have_key(const ObjectNode& node) const {
  if (may_add(node)) return true;
  const size_t next = stack_.frames.back().count, count = node.values.size();
  for (size_t i = next; i < count && i <= node.next_required[next]; ++i) {
    if (fits(node.values[i])) return true;
  }
  return false;
}

GrammarStep::Fate GrammarStep::space(uint8_t byte) {
  uint8_t& count = byte == '\n' ? stack_.newlines : stack_.blanks;
  if (count == (byte == '\n' ? max_newlines : max_blanks)) return Fate::refused;
  ++count;
  return Fate::taken;
}

GrammarStep::Fate GrammarStep::pop() {
  stack_.frames.pop_back();
  popped_ = true;
  return Fate::taken;
}

// The value's first byte; the frame below is then in phase `then`.
GrammarStep::Fate GrammarStep::begin_value(NodeId id, Phase then, uint8_t byte) {
  top().phase = then;
  const auto* choice = std::get_if<ChoiceNode>(&grammar_.at(id).is);
  if (!choice) {
    Frame frame;
    if (!fits(id) || !begins(id, byte, frame)) return Fate::refused;
    stack_.frames.push_back(frame);
    return Fate::taken;
  }
  Frame first;
  bool found = false;
  for (const NodeId node : choice->nodes) {
    Frame frame;
    if (!fits(node) || !begins(node, byte, frame)) continue;
    if (!found) {
      first = frame;
      found = true;
    } else {
      forks_.push_back(stack_);
      forks_.back().frames.push_back(frame);
    }
  }
  if (!found) return Fate::refused;
  stack_.frames.push_back(first);
  return Fate::taken;
}

bool GrammarStep::begins(NodeId id, uint8_t byte, Frame& frame) const {
  const auto& node = grammar_.at(id).is;
  frame.node = id;
  if (std::holds_alternative<StringNode>(node)) return byte == '"';
  if (const auto* number = std::get_if<NumberNode>(&node)) return number_next(*number, frame.number, byte);
  if (const auto* words = std::get_if<WordsNode>(&node)) {
    frame.cursor = words->words.next(words->words.begin(), byte);
    return !frame.cursor.empty();
  }
  frame.phase = Phase::first;
  return byte == (std::holds_alternative<ObjectNode>(node) ? '{' : '[');
}

}  // namespace lily
