// A chat as token ids: every turn is appended as it was sent and sampled, so that the session never reads anything twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/generate.h"
#include "text/tokenizer.h"

namespace lily::cli {

// Renders as the chat template does with preserve_thinking, but keeps the sampled ids instead of encoding their text anew.
class Conversation {
 public:
  explicit Conversation(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  const std::string& system() const { return system_; }
  // Replaces the system message. The turns stay; the session has to read them again.
  Result<void> set_system(std::string text);

  // Begins a turn; `thinking` decides how its reply starts.
  Result<void> ask(std::string message, bool thinking);
  // Ends the turn, closing what the template would close: the thought that a reply was stopped in, and the message.
  void answer(const Reply& reply);
  // Forgets the turn that got no answer.
  void take_back();
  void clear() { turns_.clear(); }

  std::vector<int32_t> tokens() const;        // the prompt of the turn that waits for its answer
  std::vector<int64_t> message_ends() const;  // positions before each reply: where a changed last turn can start over
  size_t turns() const { return turns_.size(); }

 private:
  struct Turn {
    std::string message;
    bool thinking = true;
    std::vector<int32_t> question;    // the message, for the first turn after the system message
    std::vector<int32_t> invitation;  // "<|im_start|>assistant\n<think>\n"
    std::vector<int32_t> reply;
  };

  Result<void> encode(Turn& turn, bool first) const;

  const Tokenizer& tokenizer_;
  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace lily::cli
