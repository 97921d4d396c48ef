#include "cli/conversation.h"

#include <utility>

#include "text/chat.h"

namespace lily::cli {
namespace {

void append(std::vector<int32_t>& to, const std::vector<int32_t>& ids) { to.insert(to.end(), ids.begin(), ids.end()); }

}  // namespace

Result<void> Conversation::encode(Turn& turn, bool first) const {
  std::vector<Message> messages;
  if (first && !system_.empty()) messages.push_back({.role = Role::system, .content = system_});
  messages.push_back({.role = Role::user, .content = turn.message});
  ChatOptions options{.enable_thinking = turn.thinking, .add_generation_prompt = false};
  LILY_TRY(const std::vector<TextPiece> question, render_chat(messages, options));
  options.add_generation_prompt = true;
  LILY_TRY(const std::vector<TextPiece> all, render_chat(messages, options));
  turn.question = tokenizer_.encode(question);
  turn.invitation = tokenizer_.encode(all);
  // Added tokens separate what is encoded on either side, so the shorter text's ids begin the longer one's.
  turn.invitation.erase(turn.invitation.begin(),
                        turn.invitation.begin() + static_cast<ptrdiff_t>(turn.question.size()));
  return {};
}

Result<void> Conversation::set_system(std::string text) {
  std::swap(system_, text);
  if (turns_.empty()) return {};
  Result<void> encoded = encode(turns_.front(), true);
  if (!encoded) std::swap(system_, text);
  return encoded;
}

Result<void> Conversation::ask(std::string message, bool thinking) {
  Turn turn{.message = std::move(message), .thinking = thinking};
  LILY_CHECK(encode(turn, turns_.empty()));
  turns_.push_back(std::move(turn));
  return {};
}

void Conversation::answer(const Reply& reply) {
  std::vector<int32_t>& ids = turns_.back().reply;
  ids = reply.tokens;
  const std::string close = reply.channel == Channel::reasoning ? "\n</think>\n\n" : "";
  append(ids, tokenizer_.encode(close + "<|im_end|>\n", true));
}

void Conversation::take_back() { turns_.pop_back(); }

std::vector<int32_t> Conversation::tokens() const {
  std::vector<int32_t> ids;
  for (const Turn& turn : turns_) {
    append(ids, turn.question);
    append(ids, turn.invitation);
    append(ids, turn.reply);
  }
  return ids;
}

std::vector<int64_t> Conversation::message_ends() const {
  std::vector<int64_t> ends;
  int64_t position = 0;
  for (const Turn& turn : turns_) {
    position += static_cast<int64_t>(turn.question.size());
    ends.push_back(position);
    position += static_cast<int64_t>(turn.invitation.size() + turn.reply.size());
  }
  return ends;
}

}  // namespace lily::cli
