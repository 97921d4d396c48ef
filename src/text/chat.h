// Messages -> prompt text: the Qwen3.5 / Qwen3.6 chat template, written in C++.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace lily {

enum class Role { system, user, assistant };

struct Message {
  Role role = Role::user;
  std::string content;
  std::string reasoning;  // assistant only: what stood between <think> and </think>
};

struct ChatOptions {
  bool enable_thinking = true;     // false: the generation prompt holds a closed, empty think block
  bool preserve_thinking = false;  // keep the reasoning of turns before the last user message (Qwen3.6)
  bool add_generation_prompt = true;
};

// Template text in trusted pieces, message text in untrusted ones. Errors are those of the template:
// a system message that is not the first, no user message.
Result<std::vector<TextPiece>> render_chat(std::span<const Message> messages, const ChatOptions& options);

}  // namespace lily
