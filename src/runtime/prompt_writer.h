// Messages -> the ids of a prompt, with the server's own past replies exactly as they were sampled.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/reply_memory.h"
#include "runtime/reply_writer.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace lily {

struct Prompt {
  std::vector<int32_t> ids;
  std::vector<int64_t>
      boundaries;            // worth a snapshot: the ends of the system block, of what comes before the last question,
                             // of the last question, and of all messages
  int64_t messages_end = 0;  // where the generation prompt begins
};

class PromptWriter {
 public:
  PromptWriter(const Tokenizer& tokenizer, ReplyMemory& memory) : tokenizer_(tokenizer), memory_(memory) {}

  // `replay`: past replies that the memory knows are shown as they were sampled, reasoning included.
  Result<Prompt> write(std::span<const Message> messages, const ChatOptions& options, bool replay) const;

  // What follows a reply before the next turn can begin.
  std::vector<int32_t> closing(const Reply& reply) const;

  // Keeps the reply to a prompt for the next one.
  void remember(const Prompt& prompt, const Reply& reply) const;

 private:
  const Tokenizer& tokenizer_;
  ReplyMemory& memory_;
};

}  // namespace lily
