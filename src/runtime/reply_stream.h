// Sampled ids -> the text that a user sees, split into reasoning and content.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "text/stop_strings.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

namespace lily {

enum class Channel { reasoning, content };

struct TextEvent {
  Channel channel;
  std::string text;  // whole UTF-8 characters, maybe none
};

// Think markers are recognised by id, before any stop string is looked for: text that merely looks like one cannot
// switch channels, and holding back cannot cut one in two. The first </think> ends the reasoning for good. Later markers are
// ordinary text; a <think> that leads the reply opens the reasoning. Stop strings apply to content only: a thought
// may well mention one. Special tokens have no text.
class ReplyStream {
 public:
  // The prompt decides where the reply starts: inside reasoning where its last think marker is an opening one.
  ReplyStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt, std::vector<std::string> stops);

  TextEvent push(int32_t id);
  TextEvent finish();  // what was still held back

  bool stopped() const { return stops_.matched(); }
  Channel channel() const { return channel_; }

 private:
  TextEvent leave_reasoning();

  const Tokenizer& tokenizer_;
  std::optional<int32_t> open_, close_;  // <think>, </think>
  Channel channel_ = Channel::content;
  bool at_start_ = true;
  Utf8Stream utf8_;
  StopStrings stops_;
};

}  // namespace lily
