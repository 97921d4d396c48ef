#include "text/grammar_state.h"

#include <algorithm>
#include <cstddef>

#include "text/grammar_step.h"

namespace lily {
namespace {

// Ways to read a text that are followed. A grammar of nested ambiguous choices could double them with every level; those
// that are left out only narrow what may be written.
constexpr size_t max_stacks = max_choices;

void remove_equal(std::vector<Stack>& stacks) {
  for (size_t i = 0; i < stacks.size(); ++i) {
    const auto rest = stacks.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    stacks.erase(std::remove(rest, stacks.end(), stacks[i]), stacks.end());
  }
}

FreeState free_text_of(const Grammar& grammar, const Stack& stack) {
  const Frame& top = stack.frames.back();
  if (top.text != StringState::plain) return {};
  const auto& node = grammar.at(top.node).is;
  if (const auto* string = std::get_if<StringNode>(&node)) {
    return {FreeText::json_string, string->max == unlimited ? unlimited : string->max - top.count};
  }
  if (std::holds_alternative<TextNode>(node)) return {FreeText::parameter, unlimited};
  if (top.phase == Frame::Phase::key && top.undeclared) return {FreeText::json_string, unlimited};
  return {};
}

bool may_end(const Grammar& grammar, const Stack& stack) {
  const Frame& root = stack.frames.front();
  if (std::holds_alternative<CallsNode>(grammar.at(root.node).is)) {
    return stack.frames.size() == 1 && root.phase == Frame::Phase::first && root.count > 0;
  }
  if (stack.frames.size() == 1) return root.phase == Frame::Phase::next;
  if (stack.frames.size() > 2) return false;
  const Frame& value = stack.frames.back();
  const auto& node = grammar.at(value.node).is;
  if (const auto* number = std::get_if<NumberNode>(&node)) return number_whole(*number, value.number);
  const auto* words = std::get_if<WordsNode>(&node);
  return words && words->words.whole(value.cursor);
}

}  // namespace

GrammarState::GrammarState(const Grammar& grammar) {
  const bool document = std::holds_alternative<DocumentNode>(grammar.at(grammar.root).is);
  stacks_.emplace_back().frames.push_back({grammar.root, document ? Frame::Phase::item : Frame::Phase::first});
}

bool GrammarState::advance(const Grammar& grammar, const GrammarState& from, uint8_t byte, bool in_tag) {
  std::vector<Stack> forks;
  bool popped = false;
  size_t count = 0;  // stacks_ keeps its stacks, whose memory is used again
  for (const Stack& stack : from.stacks_) {
    if (count == stacks_.size()) stacks_.emplace_back();
    stacks_[count] = stack;
    GrammarStep step(grammar, stacks_[count], forks, in_tag);
    if (!step.take(byte)) continue;
    popped |= step.popped();
    ++count;
  }
  stacks_.resize(count);
  stacks_.insert(stacks_.end(), forks.begin(), forks.end());
  if (popped && stacks_.size() > 1) remove_equal(stacks_);
  if (stacks_.size() > max_stacks) stacks_.resize(max_stacks);
  return !stacks_.empty();
}

bool GrammarState::complete(const Grammar& grammar) const {
  return std::any_of(stacks_.begin(), stacks_.end(), [&](const Stack& stack) { return may_end(grammar, stack); });
}

FreeState GrammarState::free_text(const Grammar& grammar) const {
  FreeState best;
  for (const Stack& stack : stacks_) {
    const FreeState free = free_text_of(grammar, stack);
    if (free.kind != FreeText::none && (best.kind == FreeText::none || free.room > best.room)) best = free;
  }
  return best;
}

bool GrammarState::all_free(const Grammar& grammar) const {
  return std::all_of(stacks_.begin(), stacks_.end(),
                     [&](const Stack& stack) { return free_text_of(grammar, stack).kind != FreeText::none; });
}

}  // namespace lily
