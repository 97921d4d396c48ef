#include <algorithm>
#include <utility>

#include "text/chat.h"
#include "text/chat_parts.h"

namespace lily {
namespace {

// The parts of a reply, in the order in which a model writes them.
enum class Part { none, reasoning, content, calls };

Part first_part(const Message& message) {
  if (!trim(message.reasoning).empty()) return Part::reasoning;
  if (!trim(message.content).empty()) return Part::content;
  return message.tool_calls.empty() ? Part::none : Part::calls;
}

Part last_part(const Message& message) {
  if (!message.tool_calls.empty()) return Part::calls;
  if (!trim(message.content).empty()) return Part::content;
  return trim(message.reasoning).empty() ? Part::none : Part::reasoning;
}

// Two texts in a row are two replies; calls may come one by one.
bool is_one_reply(const Message& before, const Message& after) {
  const Part end = last_part(before), begin = first_part(after);
  return end < begin || begin == Part::none || (end == Part::calls && begin == Part::calls);
}

// Where is_one_reply holds, no part is in both.
void append_reply(Message& reply, Message& more) {
  if (trim(reply.reasoning).empty()) reply.reasoning = std::move(more.reasoning);
  if (trim(reply.content).empty()) reply.content = std::move(more.content);
  std::move(more.tool_calls.begin(), more.tool_calls.end(), std::back_inserter(reply.tool_calls));
}

constexpr int max_argument_depth = 128;  // of arguments given as text; deeper ones stay text

OrderedJson parse_arguments(const std::string& text) {
  bool deep = false;
  const auto check = [&](int depth, OrderedJson::parse_event_t, OrderedJson&) {
    return !(deep |= depth > max_argument_depth);
  };
  OrderedJson parsed = OrderedJson::parse(text, check, false);
  return deep ? OrderedJson(text) : parsed;
}

OrderedJson arguments_of(OrderedJson given) {
  if (given.is_object()) return given;
  if (given.is_null()) return OrderedJson::object();
  if (given.is_string()) {
    const auto& text = given.get_ref<const std::string&>();
    if (trim(text).empty()) return OrderedJson::object();
    OrderedJson parsed = parse_arguments(text);
    if (parsed.is_object()) return parsed;
    if (parsed.is_null()) return OrderedJson::object();
  }
  OrderedJson wrapped = OrderedJson::object();
  wrapped["arguments"] = std::move(given);
  return wrapped;
}

// Takes the system messages off the head of `messages`, joined into one.
std::vector<Message> take_head(std::vector<Message>& messages) {
  const auto end =
      std::find_if(messages.begin(), messages.end(), [](const Message& m) { return m.role != Role::system; });
  std::vector<Message> head;
  for (auto message = messages.begin(); message != end; ++message) {
    if (head.empty()) {
      head.push_back(std::move(*message));
    } else if (trim(head[0].content).empty()) {
      head[0].content = std::move(message->content);
    } else if (!trim(message->content).empty()) {
      head[0].content += "\n\n" + message->content;
    }
  }
  messages.erase(messages.begin(), end);
  return head;
}

}  // namespace

std::vector<Message> normalize_messages(std::vector<Message> messages) {
  std::vector<Message> list = take_head(messages);
  if (messages.empty() || !is_query(messages[0])) list.push_back({.role = Role::user});
  for (Message& message : messages) {
    if (message.role == Role::system) message.role = Role::user;
    for (ToolCall& call : message.tool_calls) call.arguments = arguments_of(std::move(call.arguments));
    const bool joins = message.role == Role::assistant && !list.empty() && list.back().role == Role::assistant;
    if (joins && is_one_reply(list.back(), message)) {
      append_reply(list.back(), message);
    } else {
      list.push_back(std::move(message));
    }
  }
  while (list.back().role == Role::assistant && last_part(list.back()) == Part::none) list.pop_back();
  return list;
}

}  // namespace lily
