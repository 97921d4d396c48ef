// The parts of a conversation, as the APIs list them -> messages.
#pragma once

#include <string>
#include <vector>

#include "text/chat.h"

namespace lily::server {

// Reasoning, text and calls that follow each other become one assistant message, as they were sampled. The results of a
// message's calls stand in the order of the calls, whatever order they came in: the template shows no ids.
class TurnBuilder {
 public:
  void text(Role role, std::string text);  // system or user
  void reasoning(const std::string& text);
  void reply(const std::string& text);
  void call(ToolCall call);
  void result(std::string call_id, std::string text);
  std::vector<Message> take();

 private:
  struct Result {
    std::string call_id, text;
  };

  Message& turn(bool continues);
  void place_results();

  std::vector<Message> messages_;
  std::vector<Result> results_;  // the run of results in the making
};

}  // namespace lily::server
