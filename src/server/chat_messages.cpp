#include "server/chat_messages.h"

#include "server/wire.h"

namespace lily::server {
namespace {

// One of a content's parts.
std::string read_part(const OrderedJson& part, const std::string& path, Faults& faults) {
  if (part.is_string()) return part.get<std::string>();
  FieldReader fields(part, path, faults);
  const std::string type = fields.text("type").value_or("text");
  if (type == "refusal") return fields.text("refusal").value_or("");
  if (type != "text" && type != "input_text" && type != "output_text") {
    faults.add(fields.path_of("type"), "only text can be read", "text", type.substr(0, 40));
    return "";
  }
  const OrderedJson* text = fields.find("text");
  if (!text || !text->is_string()) {
    faults.add(fields.path_of("text"), "wrong type", "a string", text ? describe(*text) : "nothing");
    return "";
  }
  return text->get<std::string>();
}

std::string read_content(FieldReader& fields) {
  const OrderedJson* content = fields.find("content");
  if (!content) return "";
  if (content->is_string()) return content->get<std::string>();
  const std::string path = fields.path_of("content");
  if (!content->is_array()) {
    fields.faults().add(path, "wrong type", "a string or an array of parts", describe(*content));
    return "";
  }
  std::string text;
  for (size_t i = 0; i < content->size(); ++i) {
    text += read_part((*content)[i], path + "[" + std::to_string(i) + "]", fields.faults());
  }
  return text;
}

// A string of JSON or JSON itself; a string that holds no JSON stays one.
OrderedJson read_arguments(const OrderedJson* arguments) {
  if (!arguments) return OrderedJson::object();
  if (!arguments->is_string()) return *arguments;
  const auto& text = arguments->get_ref<const std::string&>();
  if (text.empty()) return OrderedJson::object();
  auto parsed = parse_json(text);
  return std::holds_alternative<OrderedJson>(parsed) ? std::get<OrderedJson>(std::move(parsed)) : *arguments;
}

ToolCall read_function(const OrderedJson& object, const std::string& path, Faults& faults) {
  FieldReader fields(object, path, faults);
  const std::string name = fields.text("name").value_or("");
  if (name.empty()) faults.add(fields.path_of("name"), "missing", "the name of a function");
  return {.name = name, .arguments = read_arguments(fields.find("arguments"))};
}

void read_call(const OrderedJson& call, const std::string& path, Faults& faults, Message& message) {
  FieldReader fields(call, path, faults);
  const std::string id = fields.text("id").value_or("");
  const OrderedJson* function = fields.object("function");
  if (!function) return faults.add(fields.path_of("function"), "missing", "an object with name and arguments");
  ToolCall read = read_function(*function, fields.path_of("function"), faults);
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
      read_call((*calls)[i], fields.path_of("tool_calls") + "[" + std::to_string(i) + "]", fields.faults(), message);
    }
  }
  if (const OrderedJson* call = fields.object("function_call")) {
    message.tool_calls.push_back(read_function(*call, fields.path_of("function_call"), fields.faults()));
  }
}

std::optional<Role> role_of(const std::string& name) {
  if (name == "system" || name == "developer") return Role::system;
  if (name == "user") return Role::user;
  if (name == "assistant") return Role::assistant;
  if (name == "tool" || name == "function") return Role::tool;
  return std::nullopt;
}

Message read_message(const OrderedJson& object, const std::string& path, Faults& faults) {
  FieldReader fields(object, path, faults);
  const std::optional<std::string> name = fields.text("role");
  const std::optional<Role> role = role_of(name.value_or(""));
  if (!role) {
    faults.add(fields.path_of("role"), "no such role", "system, developer, user, assistant, tool or function",
               name ? name->substr(0, 40) : "nothing");
    return {};
  }
  Message message{.role = *role, .content = read_content(fields)};
  fields.text("name");
  fields.text("tool_call_id");
  if (*role == Role::assistant) read_assistant(fields, message);
  return message;
}

}  // namespace

std::vector<Message> read_chat_messages(const OrderedJson& list, const std::string& path, Faults& faults) {
  std::vector<Message> messages;
  for (size_t i = 0; i < list.size() && !faults.any(); ++i) {
    messages.push_back(read_message(list[i], path + "[" + std::to_string(i) + "]", faults));
  }
  return messages;
}

}  // namespace lily::server
