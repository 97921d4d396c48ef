#include "server/request_fields.h"

#include <algorithm>
#include <set>

#include "server/ids.h"
#include "server/wire.h"

namespace lily::server {
namespace {

// Characters that would end the name where the template writes it are no part of one.
bool is_function_name(const std::string& name) {
  const auto bad = [](unsigned char c) { return c <= ' ' || c == '<' || c == '>' || c == '"' || c == 0x7f; };
  return !name.empty() && name.size() <= 256 && std::none_of(name.begin(), name.end(), bad);
}

// As the template shows it, with an empty object of parameters where the client gave none.
OrderedJson read_function(FieldReader& fields, const char* parameters) {
  const std::string name = fields.text("name").value_or("");
  if (!is_function_name(name)) {
    fields.fault("name", "no name of a function", "1 to 256 characters without blanks, quotes, < and >",
                 describe(name));
  }
  OrderedJson function = {{"name", name}};
  if (const auto description = fields.text("description")) function["description"] = *description;
  const OrderedJson* schema = fields.object(parameters);
  function["parameters"] = schema ? *schema : OrderedJson{{"type", "object"}, {"properties", OrderedJson::object()}};
  fields.boolean("strict");
  return {{"type", "function"}, {"function", std::move(function)}};
}

OrderedJson read_tool(FieldReader& tool, const OrderedJson& json, ToolForm form) {
  if (form != ToolForm::nested) return read_function(tool, form == ToolForm::custom ? "input_schema" : "parameters");
  if (auto function = tool.inner("function")) read_function(*function, "parameters");
  else tool.missing("function", "an object with a name");
  return json;
}

void read_schema(FieldReader& fields, ChatRequest& chat) {
  const OrderedJson* schema = fields.find("schema");
  if (!schema) return fields.missing("schema", "a JSON schema");
  if (!schema->is_object() && !schema->is_boolean()) return fields.wrong_type("schema", "a JSON schema", *schema);
  fields.text("name");
  fields.text("description");
  fields.boolean("strict");  // a schema always is
  chat.json_schema = *schema;
  chat.schema_field = fields.path_of("schema");
}

}  // namespace

SamplingParams read_sampling(FieldReader& body, SamplingParams params) {
  const auto set = [&](const char* name, float& value, double low, double high) {
    if (const auto number = body.number(name, low, high)) value = static_cast<float>(*number);
  };
  set("temperature", params.temperature, 0, 2);
  set("top_p", params.top_p, 0, 1);
  set("min_p", params.min_p, 0, 1);
  set("presence_penalty", params.presence_penalty, -2, 2);
  set("frequency_penalty", params.frequency_penalty, -2, 2);
  set("repetition_penalty", params.repetition_penalty, 0.01, 10);
  // Many clients write -1 for "all".
  if (const auto k = body.integer("top_k", -1, 1 << 30)) params.top_k = static_cast<int>(std::max<int64_t>(*k, 0));
  // Only the likeliest token reaches 0; the sampler wants a number above it.
  if (params.top_p == 0) params.top_p = std::numeric_limits<float>::min();
  const auto seed = body.integer("seed", std::numeric_limits<int64_t>::min());
  params.seed = seed ? static_cast<uint64_t>(*seed) : new_seed();
  return params;
}

std::string read_part(const OrderedJson& part, const std::string& path, Words types, Faults& faults) {
  if (part.is_string()) return part.get<std::string>();
  FieldReader fields(part, path, faults);
  const std::string type = fields.text("type").value_or("text");
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    fields.fault("type", "only text can be read", "text", describe(type));
    return "";
  }
  if (type == "refusal") return fields.text("refusal").value_or("");
  const auto text = fields.text("text");
  if (!text) fields.missing("text", "a string");
  return text.value_or("");
}

std::string read_text(FieldReader& fields, const char* name, Words types) {
  const OrderedJson* content = fields.find(name);
  if (!content) return "";
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  if (!content->is_array()) return fields.wrong_type(name, "a string or an array of parts", *content), text;
  for (size_t i = 0; i < content->size() && !fields.faults().any(); ++i) {
    text += read_part((*content)[i], element(fields.path_of(name), i), types, fields.faults());
  }
  return text;
}

OrderedJson read_arguments(const OrderedJson* arguments) {
  if (!arguments || *arguments == "") return OrderedJson::object();
  if (!arguments->is_string()) return *arguments;
  auto parsed = parse_json(arguments->get_ref<const std::string&>());
  return std::holds_alternative<OrderedJson>(parsed) ? std::get<OrderedJson>(std::move(parsed)) : *arguments;
}

void read_tools(FieldReader& body, ToolForm form, ChatRequest& chat, std::vector<std::string>& warnings) {
  const char* kind = form == ToolForm::custom ? "custom" : "function";
  const OrderedJson* tools = body.array("tools");
  std::set<std::string> skipped;
  for (size_t i = 0; tools && i < tools->size() && !body.faults().any(); ++i) {
    FieldReader tool((*tools)[i], element("tools", i), body.faults());
    const std::string type = form == ToolForm::custom ? tool.text("type").value_or(kind) : tool.required_text("type");
    if (type == kind) chat.tools.push_back(read_tool(tool, (*tools)[i], form));
    else skipped.insert(type);
  }
  if (skipped.empty()) return;
  // As JSON: a line stays a line, whatever the client sent.
  warnings.push_back("tools left out, as only functions are supported: " + shortened(json_text(skipped), 400));
}

std::optional<FieldReader> read_tool_choice(FieldReader& body, ToolChoice& choice) {
  choice.parallel = body.boolean("parallel_tool_calls").value_or(true);
  const OrderedJson* value = body.find("tool_choice");
  if (value && value->is_object()) return body.inner("tool_choice");
  const std::string word = body.choice("tool_choice", {"auto", "none", "required"}).value_or("auto");
  if (word == "none") choice.kind = ToolChoice::Kind::none;
  if (word == "required") choice.kind = ToolChoice::Kind::required;
  return std::nullopt;
}

bool declares(const std::vector<OrderedJson>& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(),
                     [&](const OrderedJson& tool) { return tool["function"]["name"] == name; });
}

void check_tool_choice(const ChatRequest& chat, const std::string& path, Faults& faults) {
  if (faults.any()) return;  // a tool may be no tool
  const ToolChoice& choice = chat.tool_choice;
  if (choice.kind == ToolChoice::Kind::required && chat.tools.empty()) {
    faults.add(path, "asks for a call, but there are no functions in tools");
  }
  if (choice.kind == ToolChoice::Kind::named && !declares(chat.tools, choice.name)) {
    faults.add(path, "not one of the tools", "the name of a function in tools", describe(choice.name));
  }
}

void read_format(FieldReader& fields, const char* name, const char* wrapper, ChatRequest& chat) {
  auto format = fields.inner(name);
  if (!format) return;
  const auto type = format->choice("type", {"text", "json_object", "json_schema"});
  if (!type) return format->missing("type", "text, json_object or json_schema");
  if (*type == "json_object") chat.json = true;
  if (*type == "json_schema" && !wrapper) read_schema(*format, chat);
  if (*type == "json_schema" && wrapper) {
    auto holder = format->inner(wrapper);
    if (!holder) return format->missing(wrapper, "an object with a schema");
    read_schema(*holder, chat);
    holder->refuse_others();
  }
  format->refuse_others();
}

bool read_stream_options(FieldReader& body) {
  auto options = body.inner("stream_options");
  if (!options) return false;
  const bool include_usage = options->boolean("include_usage").value_or(false);
  options->ignore({"include_obfuscation"});  // there is none
  options->refuse_others();
  return include_usage;
}

}  // namespace lily::server
