// What the chat remembers and does between two inputs; where the inputs come from is not its business.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/chat.h"
#include "cli/chat_view.h"
#include "cli/conversation.h"
#include "cli/engine.h"
#include "cli/interrupt.h"
#include "runtime/generate.h"
#include "runtime/session.h"

namespace lily::cli {

class ChatSession {
 public:
  static Result<ChatSession> create(Engine& engine, const ChatSettings& settings, ChatView& view, Interrupt& interrupt);

  void welcome();
  Result<void> answer(const std::string& message);
  // Answers a message, or does what a /command says.
  Result<void> handle(const std::string& input);
  bool wants_to_quit() const { return quit_; }
  bool was_interrupted() const { return finish_ == Finish::cancelled; }

 private:
  ChatSession(Engine& engine, Session session, ChatView& view, Interrupt& interrupt);

  Result<void> command(const std::string& name, const std::string& argument);
  Result<void> change_system(const std::string& text);
  void reset();
  void help();
  void stats();
  void note_reply(const Reply& reply);

  Engine& engine_;
  Session session_;
  Conversation conversation_;
  ChatView& view_;
  Interrupt& interrupt_;
  SamplingParams sampling_;
  int64_t chunk_ = 0;
  bool thinking_ = true;
  Finish finish_ = Finish::end_token;  // of the last reply
  Reply total_;                        // counts and times of all replies
  bool quit_ = false;
};

}  // namespace lily::cli
