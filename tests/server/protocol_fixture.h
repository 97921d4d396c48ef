// For tests of the APIs: what they make of bodies, and replies made by hand.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "server/api.h"
#include "server/silent_service.h"

namespace lily::test {

inline OrderedJson json(const std::string& text) { return OrderedJson::parse(text); }

inline OrderedJson fixture(const std::string& name) {
  std::ifstream file(std::string(LILY_SOURCE_DIR) + "/tests/server/fixtures/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return json(text.str());
}

// What an API makes of a body.
struct Parsed {
  Parsed(const server::Api& api, const OrderedJson& body) : result(api.parse(body, service())) {}
  static const ChatService& service() {
    static const SilentService instance;
    return instance;
  }
  bool ok() const { return result.index() == 0; }
  const server::ApiError& error() const {
    static const server::ApiError none;
    return ok() ? none : std::get<1>(result);
  }
  server::ApiRequest& request() {
    if (!ok()) throw std::runtime_error(error().message);
    return std::get<0>(result);
  }
  ChatRequest& chat() { return std::get<ChatRequest>(request().request); }
  server::ReplyFormat& format() { return *request().format; }

  std::variant<server::ApiRequest, server::ApiError> result;
};

// "user: hi" a line, with an assistant's reasoning and calls: "assistant: <r> text [f {"a":1}]".
inline std::string shown(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) {
    const char* roles[] = {"system", "user", "assistant", "tool"};
    text += std::string(roles[static_cast<int>(message.role)]) + ":";
    if (!message.reasoning.empty()) text += " <" + message.reasoning + ">";
    if (!message.content.empty()) text += " " + message.content;
    for (const ToolCall& call : message.tool_calls) text += " [" + call.name + " " + call.arguments.dump() + "]";
    text += "\n";
  }
  return text;
}

// A reply of single-event steps and a last step without a token.
struct ScriptedReply {
  using Kind = ReplyEvent::Kind;

  ScriptedReply& says(Kind kind, const std::string& text, int call = -1) {
    steps.push_back({.id = 1, .channel = Channel::content, .events = {{kind, text, call}}});
    reply.tokens.push_back(1);
    return *this;
  }
  ScriptedReply& calls(int call, const std::string& name, const std::vector<std::string>& arguments) {
    says(Kind::call_begin, name, call);
    for (const std::string& piece : arguments) says(Kind::call_arguments, piece, call);
    return says(Kind::call_end, "", call);
  }
  ScriptedReply& ends(Finish finish, std::vector<ReplyEvent> held_back = {}) {
    steps.push_back({.id = -1, .channel = Channel::content, .events = std::move(held_back)});
    reply.finish = finish;
    reply.prompt_tokens = 100;
    reply.reused_tokens = 60;
    reply.reasoning_tokens = 2;
    return *this;
  }

  std::vector<ReplyStep> steps;
  Reply reply;
};

inline std::vector<server::SseEvent> stream(server::ReplyFormat& format, const ScriptedReply& script) {
  std::vector<server::SseEvent> events;
  format.begin(events);
  for (const ReplyStep& step : script.steps) format.step(0, step, events);
  format.finish(0, script.reply, events);
  format.end(events);
  return events;
}

inline std::vector<std::string> names(const std::vector<server::SseEvent>& events) {
  std::vector<std::string> list;
  for (const server::SseEvent& event : events) {
    EXPECT_EQ(json(event.data)["type"], event.name);
    if (list.empty() || list.back() != event.name) list.push_back(event.name);  // runs of deltas count once
  }
  return list;
}

inline std::vector<OrderedJson> all(const std::vector<server::SseEvent>& events, const std::string& name) {
  std::vector<OrderedJson> list;
  for (const server::SseEvent& event : events) {
    if (event.name == name) list.push_back(json(event.data));
  }
  return list;
}

}  // namespace lily::test
