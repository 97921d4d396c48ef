#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/request_fields.h"
#include "server/responses.h"
#include "server/turn_builder.h"

namespace lily::server {
namespace {

class ResponsesParser {
 public:
  ResponsesParser(const OrderedJson& body, const ChatService& service) : body_(body, "", fault_), service_(service) {}

  std::variant<ApiRequest, ApiError> parse();

 private:
  void read_input();
  void read_item(const OrderedJson& item, const std::string& path);
  void read_message(JsonFields& item);
  void read_reasoning(JsonFields& item);
  void read_call(JsonFields& item);
  void read_output(JsonFields& item);
  void read_tools();
  void read_tool_choice();
  void read_allowed_tools(JsonFields& choice);
  void read_reasoning_options();
  void read_text_options();
  void read_stream_options();
  void check_include();
  OrderedJson settings();

  Fault fault_;
  JsonFields body_;
  const ChatService& service_;
  TurnBuilder turns_;
  ApiRequest request_;
  ChatRequest chat_;
  OrderedJson tools_ = OrderedJson::array();  // the functions, as they came
};

void ResponsesParser::read_input() {
  const std::string* instructions = body_.string("instructions");
  if (instructions && !instructions->empty()) turns_.text(Role::system, *instructions);
  const OrderedJson* input = body_.any("input");
  if (!input) return;
  if (input->is_string()) return turns_.text(Role::user, input->get<std::string>());
  if (!input->is_array()) return body_.blame("input", "must be a text or a list of items");
  for (size_t i = 0; i < input->size() && !fault_; ++i) read_item((*input)[i], element("input", i));
}

void ResponsesParser::read_item(const OrderedJson& json, const std::string& path) {
  JsonFields item(json, path, fault_);
  const std::string* type = item.string("type");
  if (fault_) return;
  if (!type || *type == "message") return read_message(item);
  if (*type == "reasoning") return read_reasoning(item);
  if (*type == "function_call" || *type == "custom_tool_call") return read_call(item);
  if (*type == "function_call_output" || *type == "custom_tool_call_output") return read_output(item);
  if (*type == "item_reference") return item.blame("type", "nothing is stored here: send the item itself");
  item.blame("type", "items of type \"" + *type + "\" are not supported");
}

void ResponsesParser::read_message(JsonFields& item) {
  const std::string* role = item.choice("role", {"user", "assistant", "system", "developer"});
  if (!role) return item.blame("role", "is required");
  std::string text =
      read_text(item.any("content"), item.path("content"), {"input_text", "output_text", "text"}, fault_);
  if (*role == "assistant") return turns_.reply(text);
  turns_.text(*role == "user" ? Role::user : Role::system, std::move(text));
}

// The reasoning itself where the item has it, else its summary.
void ResponsesParser::read_reasoning(JsonFields& item) {
  const OrderedJson* summary = item.array("summary");
  std::string text = read_text(item.array("content"), item.path("content"), {"reasoning_text", "text"}, fault_);
  if (text.empty()) text = read_text(summary, item.path("summary"), {"summary_text"}, fault_);
  turns_.reasoning(text);
}

void ResponsesParser::read_call(JsonFields& item) {
  ToolCall call;
  if (const std::string* id = item.string("call_id")) call.id = *id;
  if (const std::string* name = item.required_string("name")) call.name = *name;
  if (const OrderedJson* input = item.any("input")) call.arguments = {{"input", *input}};  // of a custom tool
  if (const OrderedJson* arguments = item.any("arguments")) call.arguments = read_arguments(*arguments);
  turns_.call(std::move(call));
}

void ResponsesParser::read_output(JsonFields& item) {
  const std::string* id = item.string("call_id");
  std::string text = read_text(item.any("output"), item.path("output"), {"input_text", "output_text", "text"}, fault_);
  turns_.result(id ? *id : "", std::move(text));
}

void ResponsesParser::read_tools() {
  const OrderedJson* tools = body_.array("tools");
  std::set<std::string> skipped;
  for (size_t i = 0; tools && i < tools->size() && !fault_; ++i) {
    JsonFields tool((*tools)[i], element("tools", i), fault_);
    const std::string* type = tool.required_string("type");
    if (!type) return;
    if (*type == "function") {
      chat_.tools.push_back(read_function(tool, "parameters"));
      tools_.push_back((*tools)[i]);
      tools_.back().emplace("parameters", nullptr);
      tools_.back().emplace("strict", nullptr);
    } else {
      skipped.insert(*type);
    }
  }
  warn_of_skipped(skipped, request_);
}

void ResponsesParser::read_tool_choice() {
  if (const auto parallel = body_.boolean("parallel_tool_calls")) chat_.tool_choice.parallel = *parallel;
  const OrderedJson* choice = body_.any("tool_choice");
  if (!choice) return;
  ToolChoice::Kind& kind = chat_.tool_choice.kind;
  if (choice->is_string()) {
    const std::string* word = body_.choice("tool_choice", {"auto", "none", "required"});
    if (word && *word == "none") kind = ToolChoice::Kind::none;
    if (word && *word == "required") kind = ToolChoice::Kind::required;
  } else {
    JsonFields fields(*choice, "tool_choice", fault_);
    const std::string* type = fields.choice("type", {"function", "allowed_tools"});
    if (!type) return fields.blame("type", "is required");
    if (*type == "allowed_tools") {
      read_allowed_tools(fields);
    } else if (const std::string* name = fields.required_string("name")) {
      kind = ToolChoice::Kind::named;
      chat_.tool_choice.name = *name;
    }
    fields.refuse_others();
  }
  check_tool_choice(chat_, "tool_choice", fault_);
}

void ResponsesParser::read_allowed_tools(JsonFields& choice) {
  const std::string* mode = choice.choice("mode", {"auto", "required"});
  if (mode && *mode == "required") chat_.tool_choice.kind = ToolChoice::Kind::required;
  const OrderedJson* tools = choice.array("tools");
  if (!tools) return choice.blame("tools", "is required");
  std::set<std::string> allowed;
  for (size_t i = 0; i < tools->size() && !fault_; ++i) {
    JsonFields tool((*tools)[i], element("tool_choice.tools", i), fault_);
    const std::string* name = tool.string("name");
    if (name && !declares(chat_.tools, *name)) tool.blame("name", "is no function of this request");
    if (name) allowed.insert(*name);
  }
  std::erase_if(chat_.tools, [&](const OrderedJson& tool) {
    return !allowed.contains(tool["function"]["name"].get_ref<const std::string&>());
  });
}

void ResponsesParser::read_reasoning_options() {
  ThinkingWish wish;
  if (const OrderedJson* object = body_.object("reasoning")) {
    JsonFields reasoning(*object, "reasoning", fault_);
    read_effort(reasoning, "effort", wish);
    reasoning.skip({"summary", "generate_summary", "context"});  // the reasoning itself is always shown
    reasoning.refuse_others();
  }
  read_template_fields(body_, wish, chat_, fault_);
  wish.apply(true, chat_);
}

void ResponsesParser::read_text_options() {
  const OrderedJson* object = body_.object("text");
  if (!object) return;
  JsonFields text(*object, "text", fault_);
  read_format(text.any("format"), "text.format", chat_, fault_);
  text.skip({"verbosity"});
  text.refuse_others();
}

void ResponsesParser::read_stream_options() {
  request_.stream = body_.boolean("stream").value_or(false);
  const OrderedJson* object = body_.object("stream_options");
  if (!object) return;
  JsonFields options(*object, "stream_options", fault_);
  options.skip({"include_obfuscation", "include_usage"});  // usage always comes, padding never
  options.refuse_others();
}

void ResponsesParser::check_include() {
  const OrderedJson* include = body_.array("include");
  for (size_t i = 0; include && i < include->size(); ++i) {
    // Asked for by Codex; reasoning is sent in the clear instead.
    if ((*include)[i] == "reasoning.encrypted_content") continue;
    blame(fault_, element("include", i), to_text((*include)[i]) + " is not supported");
  }
}

// 0.7 rather than the double that is nearest to the float.
OrderedJson as_written(float value) { return OrderedJson::parse(fmt::format("{}", value)); }

// Either what the client sent, or what holds without it.
OrderedJson ResponsesParser::settings() {
  const auto given = [&](const char* key, OrderedJson otherwise) {
    const OrderedJson* value = body_.any(key);
    return value ? *value : std::move(otherwise);
  };
  return {{"background", false},
          {"instructions", given("instructions", nullptr)},
          {"max_output_tokens", given("max_output_tokens", nullptr)},
          {"metadata", given("metadata", OrderedJson::object())},
          {"parallel_tool_calls", chat_.tool_choice.parallel},
          {"previous_response_id", nullptr},
          {"prompt_cache_key", given("prompt_cache_key", nullptr)},
          {"reasoning", given("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
          {"store", false},
          {"temperature", as_written(chat_.reply.sampling.temperature)},
          {"text", given("text", {{"format", {{"type", "text"}}}})},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", tools_},
          {"top_p", as_written(chat_.reply.sampling.top_p)},
          {"truncation", "disabled"},
          {"user", given("user", nullptr)}};
}

std::variant<ApiRequest, ApiError> ResponsesParser::parse() {
  if (fault_) return *fault_;
  body_.string("model");
  read_input();
  read_tools();
  read_tool_choice();
  read_reasoning_options();
  read_text_options();
  read_stream_options();
  check_include();
  read_sampling(body_, service_, chat_, fault_);
  chat_.reply.max_tokens = body_.token_count("max_output_tokens");
  body_.choice("truncation", {"disabled"});
  if (const auto top = body_.integer("top_logprobs", 0); top && *top > 0)
    body_.blame("top_logprobs", "is not supported");
  body_.refuse({"previous_response_id", "conversation", "prompt", "background", "context_management", "moderation"});
  body_.skip({"store", "metadata", "client_metadata", "prompt_cache_key", "prompt_cache_retention",
              "prompt_cache_options", "service_tier", "user", "safety_identifier", "max_tool_calls"});
  body_.refuse_others();
  if (fault_) return *fault_;
  chat_.messages = turns_.take();
  request_.format = make_responses_format(service_.model_name(), settings());
  request_.request = std::move(chat_);
  return std::move(request_);
}

}  // namespace

std::variant<ApiRequest, ApiError> parse_responses_request(const OrderedJson& body, const ChatService& service) {
  return ResponsesParser(body, service).parse();
}

namespace {

OrderedJson error_document(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? OrderedJson() : OrderedJson(text); };
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

}  // namespace

const Api& responses_api() {
  static const Api api{parse_responses_request, error_document};
  return api;
}

}  // namespace lily::server
