#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/openai_request.h"
#include "server/request_fields.h"
#include "server/responses.h"
#include "server/thinking.h"
#include "server/turn_builder.h"

namespace lily::server {
namespace {

class ResponsesParser {
 public:
  ResponsesParser(const OrderedJson& body, const ChatService& service) : body_(body, "", faults_), service_(service) {}

  std::variant<ApiRequest, ApiError> parse();

 private:
  void read_input();
  void read_item(const OrderedJson& item, const std::string& path);
  void read_message(FieldReader& item);
  void read_reasoning(FieldReader& item);
  void read_call(FieldReader& item);
  void read_choice();
  void read_allowed_tools(FieldReader& choice);
  void read_text_options();
  void check_include();
  OrderedJson settings();

  Faults faults_;
  FieldReader body_;
  const ChatService& service_;
  TurnBuilder turns_;
  ApiRequest request_;
  ChatRequest chat_;
};

void ResponsesParser::read_input() {
  const std::string instructions = body_.text("instructions").value_or("");
  if (!instructions.empty()) turns_.text(Role::system, instructions);
  const OrderedJson* input = body_.find("input");
  if (!input) return;
  if (input->is_string()) return turns_.text(Role::user, input->get<std::string>());
  if (!input->is_array()) return body_.wrong_type("input", "a string or an array of items", *input);
  for (size_t i = 0; i < input->size() && !faults_.any(); ++i) read_item((*input)[i], element("input", i));
}

void ResponsesParser::read_item(const OrderedJson& json, const std::string& path) {
  FieldReader item(json, path, faults_);
  const std::string type = item.text("type").value_or("message");
  if (faults_.any()) return;
  if (type == "message") return read_message(item);
  if (type == "reasoning") return read_reasoning(item);
  if (type == "function_call" || type == "custom_tool_call") return read_call(item);
  if (type == "function_call_output" || type == "custom_tool_call_output") {
    return turns_.result(item.text("call_id").value_or(""), read_text(item, "output"));
  }
  if (type == "item_reference") return item.fault("type", "nothing is stored here: send the item itself");
  item.fault("type", "not supported here", "a message, reasoning, a call or its output", describe(type));
}

void ResponsesParser::read_message(FieldReader& item) {
  const auto role = item.choice("role", {"user", "assistant", "system", "developer"});
  if (!role) return item.missing("role", "user, assistant, system or developer");
  std::string text = read_text(item, "content");
  if (*role == "assistant") return turns_.reply(text);
  turns_.text(*role == "user" ? Role::user : Role::system, std::move(text));
}

// The reasoning itself where the item has it, else its summary.
void ResponsesParser::read_reasoning(FieldReader& item) {
  std::string text = read_text(item, "content", {"reasoning_text", "text"});
  if (text.empty()) text = read_text(item, "summary", {"summary_text"});
  turns_.reasoning(text);
}

void ResponsesParser::read_call(FieldReader& item) {
  ToolCall call{.id = item.text("call_id").value_or(""),
                .name = item.required_text("name"),
                .arguments = read_arguments(item.find("arguments"))};
  const OrderedJson* input = item.find("input");  // of a custom tool
  if (input && !item.find("arguments")) call.arguments = {{"input", *input}};
  turns_.call(std::move(call));
}

void ResponsesParser::read_choice() {
  if (auto choice = read_tool_choice(body_, chat_.tool_choice)) {
    const auto type = choice->choice("type", {"function", "allowed_tools"});
    if (!type) return choice->missing("type", "function or allowed_tools");
    if (*type == "allowed_tools") {
      read_allowed_tools(*choice);
    } else {
      chat_.tool_choice.kind = ToolChoice::Kind::named;
      chat_.tool_choice.name = choice->required_text("name");
    }
    choice->refuse_others();
  }
  check_tool_choice(chat_, "tool_choice", faults_);
}

void ResponsesParser::read_allowed_tools(FieldReader& choice) {
  if (choice.choice("mode", {"auto", "required"}) == "required") {
    chat_.tool_choice.kind = ToolChoice::Kind::required;
  }
  const OrderedJson* tools = choice.array("tools");
  if (!tools) return choice.missing("tools", "an array of tools");
  std::set<std::string> allowed;
  for (size_t i = 0; i < tools->size() && !faults_.any(); ++i) {
    FieldReader tool((*tools)[i], element("tool_choice.tools", i), faults_);
    const auto name = tool.text("name");
    if (!name) continue;
    if (!declares(chat_.tools, *name)) tool.fault("name", "not one of the tools", "", describe(*name));
    allowed.insert(*name);
  }
  std::erase_if(chat_.tools, [&](const OrderedJson& tool) {
    return !allowed.contains(tool["function"]["name"].get_ref<const std::string&>());
  });
}

void ResponsesParser::read_text_options() {
  auto text = body_.inner("text");
  if (!text) return;
  read_format(*text, "format", nullptr, chat_);
  text->ignore({"verbosity"});
  text->refuse_others();
}

void ResponsesParser::check_include() {
  const OrderedJson* include = body_.array("include");
  for (size_t i = 0; include && i < include->size(); ++i) {
    // Asked for by Codex; reasoning is sent in the clear instead.
    if ((*include)[i] == "reasoning.encrypted_content") continue;
    faults_.add(element("include", i), "not supported", "", describe((*include)[i]));
  }
}

// 0.7 rather than the double that is nearest to the float.
OrderedJson as_written(float value) { return OrderedJson::parse(fmt::format("{}", value)); }

// Either what the client sent, or what holds without it.
OrderedJson ResponsesParser::settings() {
  const auto given = [&](const char* key, OrderedJson otherwise) {
    const OrderedJson* value = body_.find(key);
    return value ? *value : std::move(otherwise);
  };
  OrderedJson functions = OrderedJson::array();
  for (OrderedJson& tool : given("tools", OrderedJson::array())) {
    if (tool["type"] != "function") continue;
    tool.emplace("parameters", nullptr);
    tool.emplace("strict", nullptr);
    functions.push_back(std::move(tool));
  }
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
          {"tools", functions},
          {"top_p", as_written(chat_.reply.sampling.top_p)},
          {"truncation", "disabled"},
          {"user", given("user", nullptr)}};
}

std::variant<ApiRequest, ApiError> ResponsesParser::parse() {
  if (faults_.any()) return faults_.first();
  body_.text("model");
  read_input();
  read_tools(body_, ToolForm::flat, chat_, request_.warnings);
  read_choice();
  read_thinking(body_, ThinkingDefault::on, chat_);
  read_text_options();
  request_.stream = body_.boolean("stream").value_or(false);
  read_stream_options(body_);  // usage always comes
  check_include();
  chat_.reply.sampling = read_sampling(body_, service_.default_sampling(chat_.enable_thinking));
  chat_.reply.max_tokens = body_.token_count("max_output_tokens");
  body_.choice("truncation", {"disabled"});
  body_.integer("top_logprobs", 0, 0);
  body_.refuse_given(
      {"previous_response_id", "conversation", "prompt", "background", "context_management", "moderation"});
  body_.ignore({"store", "metadata", "client_metadata", "prompt_cache_key", "prompt_cache_retention",
                "prompt_cache_options", "service_tier", "user", "safety_identifier", "max_tool_calls"});
  body_.refuse_others();
  if (faults_.any()) return faults_.first();
  chat_.messages = turns_.take();
  request_.format = make_responses_format(service_.model_name(), settings());
  request_.request = std::move(chat_);
  return std::move(request_);
}

}  // namespace

std::variant<ApiRequest, ApiError> parse_responses_request(const OrderedJson& body, const ChatService& service) {
  return ResponsesParser(body, service).parse();
}

const Api& responses_api() {
  static const Api api{parse_responses_request, openai_error};
  return api;
}

}  // namespace lily::server
