// POST /v1/chat/completions: the request.
#include <algorithm>

#include "server/api.h"
#include "server/chat_format.h"
#include "server/chat_messages.h"
#include "server/field_reader.h"
#include "server/openai_request.h"
#include "server/thinking.h"

namespace lily::server {
namespace {

const OrderedJson* function_of(const OrderedJson& tool) {
  const auto function = tool.find("function");
  return function == tool.end() ? nullptr : &*function;
}

// Characters that would end the name where the template writes it are no part of one.
bool is_function_name(const std::string& name) {
  const auto bad = [](unsigned char c) { return c <= ' ' || c == '<' || c == '>' || c == '"' || c == 0x7f; };
  return !name.empty() && name.size() <= 256 && std::none_of(name.begin(), name.end(), bad);
}

void check_function(const OrderedJson& tool, const std::string& path, Faults& faults) {
  FieldReader fields(tool, path, faults);
  const OrderedJson* function = fields.object("function");
  if (!function) return faults.add(fields.path_of("function"), "missing", "an object with a name");
  FieldReader inner(*function, fields.path_of("function"), faults);
  const std::string name = inner.text("name").value_or("");
  if (!is_function_name(name)) {
    faults.add(inner.path_of("name"), "no name of a function", "1 to 256 characters without blanks, quotes, < and >",
               name.substr(0, 40));
  }
  inner.text("description");
  inner.object("parameters");
  inner.boolean("strict");
}

// Hosted tools cannot run here. Agents send them beside their own and do without.
void read_tools(FieldReader& fields, ChatRequest& request, std::vector<std::string>& warnings) {
  const OrderedJson* tools = fields.array("tools");
  if (!tools) return;
  for (size_t i = 0; i < tools->size(); ++i) {
    const OrderedJson& tool = (*tools)[i];
    const std::string path = fields.path_of("tools") + "[" + std::to_string(i) + "]";
    FieldReader entry(tool, path, fields.faults());
    const std::optional<std::string> type = entry.text("type");
    if (!type) fields.faults().add(entry.path_of("type"), "missing", "function");
    if (fields.faults().any()) return;
    if (*type != "function") {
      warnings.push_back(path + " left out: type " + type->substr(0, 40) + " is not function");
      continue;
    }
    check_function(tool, path, fields.faults());
    request.tools.push_back(tool);
  }
}

void read_named_choice(const OrderedJson& choice, const std::string& path, Faults& faults, ChatRequest& request) {
  FieldReader fields(choice, path, faults);
  const std::string type = fields.text("type").value_or("function");
  if (type != "function") return faults.add(fields.path_of("type"), "not supported", "function", type.substr(0, 40));
  const OrderedJson* function = fields.object("function");
  FieldReader inner(function ? *function : choice, function ? fields.path_of("function") : path, faults);
  const std::string name = inner.text("name").value_or("");
  const bool declared = std::any_of(request.tools.begin(), request.tools.end(),
                                    [&](const OrderedJson& tool) { return (*function_of(tool))["name"] == name; });
  if (!declared) faults.add(inner.path_of("name"), "not one of the tools", "the name of a tool", name.substr(0, 40));
  request.tool_choice.kind = ToolChoice::Kind::named;
  request.tool_choice.name = name;
}

void read_tool_choice(FieldReader& fields, ChatRequest& request) {
  request.tool_choice.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  const OrderedJson* choice = fields.find("tool_choice");
  if (!choice || fields.faults().any()) return;
  const std::string path = fields.path_of("tool_choice");
  if (choice->is_object()) return read_named_choice(*choice, path, fields.faults(), request);
  const std::string kind = fields.text("tool_choice").value_or("auto");
  if (kind == "none") request.tool_choice.kind = ToolChoice::Kind::none;
  else if (kind == "required") request.tool_choice.kind = ToolChoice::Kind::required;
  else if (kind != "auto") {
    fields.faults().add(path, "no such choice", "auto, none, required or a function", kind.substr(0, 40));
  }
  if (kind == "required" && request.tools.empty())
    fields.faults().add(path, "required, but there are no functions in tools");
}

void read_response_format(FieldReader& fields, ChatRequest& request) {
  const OrderedJson* format = fields.object("response_format");
  if (!format) return;
  FieldReader inner(*format, fields.path_of("response_format"), fields.faults());
  const std::string type = inner.text("type").value_or("");
  if (type == "json_object") {
    request.json = true;
  } else if (type == "json_schema") {
    const OrderedJson* schema = inner.object("json_schema");
    if (!schema) return fields.faults().add(inner.path_of("json_schema"), "missing", "an object with a schema");
    FieldReader named(*schema, inner.path_of("json_schema"), fields.faults());
    const OrderedJson* found = named.find("schema");
    if (!found || !(found->is_object() || found->is_boolean())) {
      return fields.faults().add(named.path_of("schema"), "wrong type", "a JSON schema",
                                 found ? describe(*found) : "nothing");
    }
    named.text("name");
    named.text("description");
    named.boolean("strict");  // a schema always is
    named.refuse_others();
    request.json_schema = *found;
  } else if (type != "text") {
    fields.faults().add(inner.path_of("type"), "no such format", "text, json_object or json_schema",
                        type.substr(0, 40));
  }
  inner.refuse_others();
}

void read_logprobs(FieldReader& fields, ReplyOptions& reply) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (wanted) reply.top_logprobs = static_cast<int>(top.value_or(0));
  else if (top.value_or(0) > 0) fields.faults().add("top_logprobs", "needs logprobs", "\"logprobs\": true");
}

// Fields that OpenAI has and that would change the reply.
void refuse_unsupported(FieldReader& fields) {
  fields.refuse("functions", "replaced by tools");
  fields.refuse("function_call", "replaced by tool_choice");
  fields.refuse("audio", "only text can be written");
  fields.refuse("prediction", "not supported");
  fields.refuse("web_search_options", "not supported");
  if (const OrderedJson* modalities = fields.array("modalities"); modalities && *modalities != OrderedJson({"text"})) {
    fields.faults().add("modalities", "only text can be written", "[\"text\"]", describe(*modalities));
  }
  if (const auto verbosity = fields.text("verbosity"); verbosity && *verbosity != "medium") {
    fields.faults().add("verbosity", "not supported", "medium", verbosity->substr(0, 40));
  }
}

std::variant<ApiRequest, ApiError> parse(const OrderedJson& body, const ChatService& service) {
  Faults faults;
  FieldReader fields(body, "", faults);
  ApiRequest parsed;
  ChatRequest request;
  const OrderedJson* messages = fields.array("messages");
  if (!messages || messages->empty()) faults.add("messages", "missing", "an array of at least one message");
  if (messages) request.messages = read_chat_messages(*messages, "messages", faults);
  const Thinking thinking = read_thinking(fields);
  request.enable_thinking = thinking.enabled;
  request.preserve_thinking = thinking.preserve;
  request.reply.sampling = service.default_sampling(thinking.enabled);
  if (thinking.enabled) request.reply.thinking_budget = thinking.budget;
  const CommonFields common = read_common(fields, service, request.reply);
  read_logprobs(fields, request.reply);
  read_tools(fields, request, parsed.warnings);
  read_tool_choice(fields, request);
  read_response_format(fields, request);
  refuse_unsupported(fields);
  fields.refuse_others();
  if (faults.any()) return faults.first();
  parsed.n = common.n;
  parsed.stream = common.stream;
  parsed.format = make_chat_format(
      service,
      {.choices = common.n, .include_usage = common.include_usage, .logprobs = request.reply.top_logprobs.has_value()});
  parsed.request = std::move(request);
  return parsed;
}

}  // namespace

const Api& chat_completions_api() {
  static const Api api{parse, openai_error};
  return api;
}

}  // namespace lily::server
