// Messages -> prompt text: the Qwen3.5 / Qwen3.6 chat template, written in C++.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace lily {

using OrderedJson = nlohmann::ordered_json;  // keeps the order of keys, which the template shows to the model

enum class Role { system, user, assistant, tool };

struct ToolCall {
  std::string id;         // the API's name for the call; the template does not show it
  std::string name;       // of the function
  OrderedJson arguments;  // an object; anything else is shown as no arguments
};

struct Message {
  Role role = Role::user;
  std::string content;
  std::string reasoning;             // assistant only: what stood between <think> and </think>
  std::vector<ToolCall> tool_calls;  // assistant only
};

// Qwen3.5's template has no preserve_thinking and shows scalar arguments as Python does (True, None).
enum class TemplateVersion { qwen3_5, qwen3_6 };

struct ChatOptions {
  TemplateVersion version = TemplateVersion::qwen3_6;
  bool enable_thinking = true;     // false: the generation prompt holds a closed, empty think block
  bool preserve_thinking = false;  // keep the reasoning of turns before the last user message (Qwen3.6)
  bool add_generation_prompt = true;
  std::vector<OrderedJson> tools;  // as the template shows them: {"type": "function", "function": {...}}
};

// A stretch of the prompt that begins with <|im_start|>, so that it can be encoded by itself: a system block, a message, a
// run of tool results, or the generation prompt (no messages). Template text in trusted pieces, message text in untrusted
// ones. (The template opens no turn for tool results that lead the list; a list from normalize_messages has none.)
struct Turn {
  Role role;
  size_t first, count;  // of the messages it shows; none: the tools without a system message, the generation prompt
  std::vector<TextPiece> pieces;
};

// Errors are those of the template: a system message that is not the first, no user message.
Result<std::vector<Turn>> render_turns(std::span<const Message> messages, const ChatOptions& options);

// The same as one text.
Result<std::vector<TextPiece>> render_chat(std::span<const Message> messages, const ChatOptions& options);

// Any list of messages that OpenAI's or Anthropic's API accepts -> one that the template accepts, with nothing lost, and such
// that later messages change how earlier ones are shown as seldom as possible:
// - System messages at the head are joined by a blank line; later ones become user messages where they stand.
// - An empty user message goes before the first other message that does not ask anything (an assistant's greeting, a tool
//   result, nothing at all).
// - An assistant message is joined to the one before it where both read as one reply: reasoning, then content, then calls.
//   Other neighbours stay turns of their own. Empty ones at the end go.
// - Arguments that are a text of JSON become the object; none or an empty text become {}; anything else becomes the one
//   argument "arguments".
std::vector<Message> normalize_messages(std::vector<Message> messages);

}  // namespace lily
