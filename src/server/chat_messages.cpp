#include "server/chat_messages.h"

#include "server/request_fields.h"

namespace lily::server {
namespace {

ToolCall read_function(FieldReader& fields) {
  return {.name = fields.required_text("name"), .arguments = read_arguments(fields.find("arguments"))};
}

void read_call(const OrderedJson& call, const std::string& path, Faults& faults, Message& message) {
  FieldReader fields(call, path, faults);
  const std::string id = fields.text("id").value_or("");
  auto function = fields.inner("function");
  if (!function) return fields.missing("function", "an object with name and arguments");
  ToolCall read = read_function(*function);
  read.id = id;
  message.tool_calls.push_back(std::move(read));
}

void read_assistant(FieldReader& fields, Message& message) {
  // Some clients keep the reasoning under the one name, some under the other.
  const auto reasoning_content = fields.text("reasoning_content");
  const OrderedJson* reasoning = fields.find("reasoning");
  if (reasoning_content && !reasoning_content->empty()) message.reasoning = *reasoning_content;
  else if (reasoning && reasoning->is_string()) message.reasoning = reasoning->get<std::string>();
  else if (reasoning) fields.text("reasoning");  // the fault
  if (const auto refusal = fields.text("refusal"); refusal && message.content.empty()) message.content = *refusal;
  if (const OrderedJson* calls = fields.array("tool_calls")) {
    for (size_t i = 0; i < calls->size(); ++i) {
      read_call((*calls)[i], element(fields.path_of("tool_calls"), i), fields.faults(), message);
    }
  }
  if (auto call = fields.inner("function_call")) message.tool_calls.push_back(read_function(*call));
}

Role role_of(const std::string& name) {
  if (name == "user") return Role::user;
  if (name == "assistant") return Role::assistant;
  return name == "tool" || name == "function" ? Role::tool : Role::system;
}

Message read_message(const OrderedJson& object, const std::string& path, Faults& faults) {
  FieldReader fields(object, path, faults);
  const auto name = fields.choice("role", {"system", "developer", "user", "assistant", "tool", "function"});
  if (!name) return fields.missing("role", "who speaks"), Message{};
  const Role role = role_of(*name);
  Message message{.role = role, .content = read_text(fields, "content")};
  fields.text("name");
  fields.text("tool_call_id");
  if (role == Role::assistant) read_assistant(fields, message);
  return message;
}

}  // namespace

std::vector<Message> read_chat_messages(const OrderedJson& list, const std::string& path, Faults& faults) {
  std::vector<Message> messages;
  for (size_t i = 0; i < list.size() && !faults.any(); ++i) {
    messages.push_back(read_message(list[i], element(path, i), faults));
  }
  return messages;
}

}  // namespace lily::server
