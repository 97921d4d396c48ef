#include "server/request_fields.h"

#include <algorithm>
#include <limits>

#include "server/ids.h"

namespace lily::server {
namespace {

void read_float(JsonFields& body, std::string_view key, float& out) {
  if (const auto value = body.number(key)) out = static_cast<float>(*value);
}

}  // namespace

void read_sampling(JsonFields& body, const ChatService& service, ChatRequest& chat, Fault& fault) {
  SamplingParams& sampling = chat.reply.sampling;
  sampling = service.default_sampling(chat.enable_thinking);
  read_float(body, "temperature", sampling.temperature);
  read_float(body, "top_p", sampling.top_p);
  read_float(body, "min_p", sampling.min_p);
  read_float(body, "repetition_penalty", sampling.repetition_penalty);
  read_float(body, "presence_penalty", sampling.presence_penalty);
  read_float(body, "frequency_penalty", sampling.frequency_penalty);
  if (const auto value = body.integer("top_k", 0)) {
    sampling.top_k = static_cast<int>(std::min<int64_t>(*value, std::numeric_limits<int>::max()));
  }
  const auto seed = body.integer("seed", std::numeric_limits<int64_t>::min());
  sampling.seed = seed ? static_cast<uint64_t>(*seed) : new_seed();
  if (const Result<void> good = check(sampling); !good) {
    const Error& error = good.error();
    blame(fault, error.where, "must be " + error.expected + ", not " + error.got);
  }
}

void ThinkingWish::apply(bool otherwise, ChatRequest& chat) const {
  chat.enable_thinking = !off && (on || otherwise);
  if (chat.enable_thinking) chat.reply.thinking_budget = budget;
}

void read_effort(JsonFields& fields, std::string_view key, ThinkingWish& wish) {
  constexpr int64_t low_budget = 4096;
  const std::string* effort = fields.choice(key, {"none", "minimal", "low", "medium", "high", "xhigh", "max"});
  if (!effort) return;
  wish.says(*effort != "none" && *effort != "minimal");
  if (*effort == "low" && !wish.budget) wish.budget = low_budget;
}

void read_template_fields(JsonFields& body, ThinkingWish& wish, ChatRequest& chat, Fault& fault) {
  const auto read = [&](JsonFields& fields) {
    wish.says(fields.boolean("enable_thinking"));
    if (const auto keeps = fields.boolean("preserve_thinking")) chat.preserve_thinking = *keeps;
    if (const auto budget = fields.token_count("thinking_budget")) wish.budget = *budget;
    read_effort(fields, "reasoning_effort", wish);
  };
  read(body);
  const OrderedJson* object = body.object("chat_template_kwargs");
  if (!object) return;
  JsonFields kwargs(*object, body.path("chat_template_kwargs"), fault);
  read(kwargs);
  kwargs.refuse_others();
}

std::string read_part(const OrderedJson& json, const std::string& path, std::initializer_list<std::string_view> types,
                      Fault& fault) {
  JsonFields part(json, path, fault);
  const std::string* type = part.required_string("type");
  if (!type) return "";
  if (std::find(types.begin(), types.end(), *type) == types.end()) {
    part.blame("type", "\"" + *type + "\" is not supported here, only text is");
    return "";
  }
  const std::string* text = part.string("text");
  return text ? *text : "";
}

std::string read_text(const OrderedJson* content, const std::string& path,
                      std::initializer_list<std::string_view> types, Fault& fault) {
  if (!content) return "";
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) blame(fault, path, "must be a text or a list of parts");
  std::string text;
  for (size_t i = 0; i < content->size() && !fault; ++i)
    text += read_part((*content)[i], element(path, i), types, fault);
  return text;
}

OrderedJson read_arguments(const OrderedJson& arguments) {
  if (!arguments.is_string()) return arguments;
  return parse_inner_json(arguments.get_ref<const std::string&>()).value_or(arguments);
}

OrderedJson read_function(JsonFields& tool, std::string_view parameters) {
  OrderedJson function = OrderedJson::object();
  const std::string* name = tool.required_string("name");
  function["name"] = name ? *name : "";
  if (const std::string* description = tool.string("description")) function["description"] = *description;
  const OrderedJson* schema = tool.object(parameters);
  function["parameters"] = schema ? *schema : OrderedJson{{"type", "object"}, {"properties", OrderedJson::object()}};
  return {{"type", "function"}, {"function", std::move(function)}};
}

void warn_of_skipped(const std::set<std::string>& types, ApiRequest& request) {
  if (types.empty()) return;
  // As JSON: a line stays a line, whatever the client sent.
  request.warnings.push_back("tools left out, as only functions are supported: " + shortened(to_text(types)));
}

bool declares(const std::vector<OrderedJson>& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(),
                     [&](const OrderedJson& tool) { return tool["function"]["name"] == name; });
}

void check_tool_choice(const ChatRequest& chat, const std::string& path, Fault& fault) {
  const ToolChoice& choice = chat.tool_choice;
  if (choice.kind == ToolChoice::Kind::required && chat.tools.empty()) {
    blame(fault, path, "asks for a call, and the request has no function that could be called");
  }
  if (choice.kind == ToolChoice::Kind::named && !declares(chat.tools, choice.name)) {
    blame(fault, path, "names \"" + choice.name + "\", which is no function of this request");
  }
}

void read_format(const OrderedJson* format, const std::string& path, ChatRequest& chat, Fault& fault) {
  if (!format || format->is_null()) return;
  JsonFields fields(*format, path, fault);
  const std::string* type = fields.required_string("type");
  if (!type) return;
  if (*type == "json_object") {
    chat.json = true;
  } else if (*type == "json_schema") {
    fields.skip({"name", "description", "strict"});  // a schema is always enforced
    const OrderedJson* schema = fields.object("schema");
    if (!schema) return fields.blame("schema", "is required");
    chat.json_schema = *schema;
  } else if (*type != "text") {
    fields.blame("type", "must be \"text\", \"json_object\" or \"json_schema\"");
  }
  fields.refuse_others();
}

}  // namespace lily::server
