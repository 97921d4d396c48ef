#include "runtime/reply_stream.h"

#include <algorithm>
#include <utility>

namespace lily {

ReplyStream::ReplyStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt, std::vector<std::string> stops)
    : tokenizer_(tokenizer),
      open_(tokenizer.added_token("<think>")),
      close_(tokenizer.added_token("</think>")),
      stops_(std::move(stops)) {
  const auto marker =
      std::find_if(prompt.rbegin(), prompt.rend(), [&](int32_t id) { return id == open_ || id == close_; });
  if (marker != prompt.rend() && *marker == open_) channel_ = Channel::reasoning;
}

TextEvent ReplyStream::push(int32_t id) {
  const bool leading = std::exchange(at_start_, false);
  if (leading && id == open_) {
    channel_ = Channel::reasoning;
    return {channel_, ""};
  }
  if (id == close_ && channel_ == Channel::reasoning) return leave_reasoning();
  if (tokenizer_.is_special(id)) return {channel_, ""};
  std::string text = utf8_.push(tokenizer_.bytes_of(id));
  if (channel_ == Channel::content) text = stops_.push(text);
  return {channel_, std::move(text)};
}

TextEvent ReplyStream::leave_reasoning() {
  channel_ = Channel::content;
  return {Channel::reasoning, utf8_.finish()};
}

TextEvent ReplyStream::finish() {
  std::string text = utf8_.finish();
  if (channel_ == Channel::content) {
    text = stops_.push(text);
    text += stops_.finish();
  }
  return {channel_, std::move(text)};
}

}  // namespace lily
