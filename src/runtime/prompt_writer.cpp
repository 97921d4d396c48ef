#include "runtime/prompt_writer.h"

#include <algorithm>

namespace lily {
namespace {

void append(std::vector<int32_t>& to, std::span<const int32_t> ids) { to.insert(to.end(), ids.begin(), ids.end()); }

}  // namespace

Result<Prompt> PromptWriter::write(std::span<const Message> messages, const ChatOptions& options, bool replay) const {
  LILY_TRY(const std::vector<Turn> turns, render_turns(messages, options));
  Prompt prompt;
  std::vector<int64_t> ends;  // by turn
  size_t last_question = 0;
  for (const Turn& turn : turns) {
    if (turn.count == 0 && turn.role == Role::assistant) break;  // the generation prompt
    std::optional<std::vector<int32_t>> sampled;
    if (turn.role == Role::assistant && replay) sampled = memory_.recall(prompt.ids, messages[turn.first]);
    append(prompt.ids, sampled ? *sampled : tokenizer_.encode(turn.pieces));
    if (turn.role == Role::user) last_question = ends.size();
    ends.push_back(static_cast<int64_t>(prompt.ids.size()));
  }
  prompt.messages_end = ends.empty() ? 0 : ends.back();
  if (ends.size() < turns.size()) append(prompt.ids, tokenizer_.encode(turns.back().pieces));

  if (!turns.empty() && turns[0].role == Role::system) prompt.boundaries.push_back(ends[0]);
  if (last_question > 0) prompt.boundaries.push_back(ends[last_question - 1]);
  if (!ends.empty()) prompt.boundaries.push_back(ends[last_question]);
  prompt.boundaries.push_back(prompt.messages_end);
  return prompt;
}

std::vector<int32_t> PromptWriter::closing(const Reply& reply) const {
  const std::string close = reply.channel == Channel::reasoning ? "\n</think>\n\n" : "";
  return tokenizer_.encode(close + "<|im_end|>\n", true);
}

void PromptWriter::remember(const Prompt& prompt, const Reply& reply) const {
  if (reply.tokens.empty() || reply.finish == Finish::stop_string) return;  // it ends inside what was sampled
  const auto before = std::span(prompt.ids).first(static_cast<size_t>(prompt.messages_end));
  std::vector<int32_t> turn(prompt.ids.begin() + prompt.messages_end, prompt.ids.end());
  append(turn, reply.tokens);
  append(turn, closing(reply));
  memory_.remember(before, reply.message, std::move(turn));
}

}  // namespace lily
