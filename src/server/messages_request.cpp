#include <utility>

#include "server/messages.h"
#include "server/request_fields.h"
#include "server/thinking.h"
#include "server/turn_builder.h"

namespace lily::server {
namespace {

class MessagesParser {
 public:
  MessagesParser(const OrderedJson& body, const ChatService& service) : body_(body, "", faults_), service_(service) {}

  std::variant<ApiRequest, ApiError> parse();
  std::variant<ChatRequest, ApiError> parse_for_counting();

 private:
  void read_prompt();
  void read_system(FieldReader& fields, const char* name);
  void read_message(const OrderedJson& message, const std::string& path);
  void read_user_block(FieldReader& block, const std::string& type, std::string& text);
  void read_assistant_block(FieldReader& block, const std::string& type);
  void read_tool_result(FieldReader& block);
  void read_tool_choice();
  void read_output_config();
  void read_stop_sequences();
  void check_others();

  Faults faults_;
  FieldReader body_;
  const ChatService& service_;
  TurnBuilder turns_;
  ApiRequest request_;
  ChatRequest chat_;
  MessagesFormatOptions shape_;
};

// Claude Code puts a line with a checksum of the request first, which would make every prompt a new one.
std::string without_billing_line(std::string text) {
  if (!text.starts_with("x-anthropic-billing-header:")) return text;
  const size_t end = text.find('\n');
  return end == text.npos ? "" : text.substr(end + 1);
}

// Blocks are paragraphs of one system message.
void MessagesParser::read_system(FieldReader& fields, const char* name) {
  const OrderedJson* system = fields.find(name);
  if (!system) return;
  if (!system->is_string() && !system->is_array()) {
    return fields.wrong_type(name, "a string or an array of text blocks", *system);
  }
  std::string text;
  for (size_t i = 0; i < system->size() && !faults_.any(); ++i) {  // a string has the size 1
    const OrderedJson& block = system->is_string() ? *system : (*system)[i];
    const std::string paragraph =
        without_billing_line(read_part(block, element(fields.path_of(name), i), {"text"}, faults_));
    if (!text.empty() && !paragraph.empty()) text += "\n\n";
    text += paragraph;
  }
  if (!text.empty()) turns_.text(Role::system, std::move(text));
}

void MessagesParser::read_message(const OrderedJson& json, const std::string& path) {
  FieldReader message(json, path, faults_);
  const auto role = message.choice("role", {"user", "assistant", "system", "developer"});
  if (!role) return message.missing("role", "user, assistant, system or developer");
  if (*role == "system" || *role == "developer") return read_system(message, "content");
  const bool user = *role == "user";
  const OrderedJson* content = message.find("content");
  if (!content || content->is_string()) {
    std::string text = content ? content->get<std::string>() : "";
    return user ? turns_.text(Role::user, std::move(text)) : turns_.reply(text);
  }
  if (!content->is_array()) return message.wrong_type("content", "a string or an array of blocks", *content);
  std::string text;
  bool has_text = content->empty();
  for (size_t i = 0; i < content->size() && !faults_.any(); ++i) {
    FieldReader block((*content)[i], element(message.path_of("content"), i), faults_);
    const std::string type = block.required_text("type");
    if (user) read_user_block(block, type, text);
    else read_assistant_block(block, type);
    has_text |= type == "text";
  }
  // After the results that the same message brings.
  if (user && has_text) turns_.text(Role::user, std::move(text));
}

void MessagesParser::read_user_block(FieldReader& block, const std::string& type, std::string& text) {
  if (type == "tool_result") return read_tool_result(block);
  if (type == "text") text += block.text("text").value_or("");
  else block.fault("type", "not supported here", "text or tool_result", describe(type));
}

void MessagesParser::read_tool_result(FieldReader& block) {
  std::string id = block.required_text("tool_use_id");
  std::string text = read_text(block, "content", {"text"});
  if (block.boolean("is_error").value_or(false)) text = text.empty() ? "Error" : "Error: " + text;
  turns_.result(std::move(id), std::move(text));
}

void MessagesParser::read_assistant_block(FieldReader& block, const std::string& type) {
  if (type == "text") {
    if (const auto text = block.text("text")) turns_.reply(*text);
  } else if (type == "thinking") {
    if (const auto text = block.text("thinking")) turns_.reasoning(*text);
  } else if (type == "tool_use") {
    turns_.call({.id = block.required_text("id"),
                 .name = block.required_text("name"),
                 .arguments = read_arguments(block.find("input"))});
  } else if (type != "redacted_thinking") {  // which nobody here can read
    block.fault("type", "not supported here", "text, thinking, redacted_thinking or tool_use", describe(type));
  }
}

void MessagesParser::read_tool_choice() {
  auto choice = body_.inner("tool_choice");
  if (!choice) return;
  const auto type = choice->choice("type", {"auto", "any", "tool", "none"});
  if (!type) return choice->missing("type", "auto, any, tool or none");
  ToolChoice& chosen = chat_.tool_choice;
  if (*type == "none") chosen.kind = ToolChoice::Kind::none;
  if (*type == "any") chosen.kind = ToolChoice::Kind::required;
  if (*type == "tool") {
    chosen.kind = ToolChoice::Kind::named;
    chosen.name = choice->required_text("name");
  }
  chosen.parallel = !choice->boolean("disable_parallel_tool_use").value_or(false);
  choice->refuse_others();
  check_tool_choice(chat_, "tool_choice", faults_);
}

void MessagesParser::read_output_config() {
  if (auto config = body_.inner("output_config")) {
    config->ignore({"effort", "task_budget"});  // the model knows no degrees
    read_format(*config, "format", nullptr, chat_);
    config->refuse_others();
  }
  read_format(body_, "output_format", nullptr, chat_);  // its older name
}

void MessagesParser::read_stop_sequences() {
  const OrderedJson* stops = body_.array("stop_sequences");
  for (size_t i = 0; stops && i < stops->size(); ++i) {
    const OrderedJson& stop = (*stops)[i];
    if (!stop.is_string() || stop.get_ref<const std::string&>().empty()) {
      return faults_.add(element("stop_sequences", i), "wrong type", "a string that is not empty", describe(stop));
    }
    chat_.reply.splitter.stops.push_back(stop.get<std::string>());
  }
  if (chat_.reply.splitter.stops.size() == 1) shape_.stop = chat_.reply.splitter.stops.front();
}

void MessagesParser::read_prompt() {
  body_.text("model");
  read_system(body_, "system");
  const OrderedJson* messages = body_.array("messages");
  if (!messages) return body_.missing("messages", "an array of messages");
  for (size_t i = 0; i < messages->size() && !faults_.any(); ++i) read_message((*messages)[i], element("messages", i));
  read_tools(body_, ToolForm::custom, chat_, request_.warnings);
  read_tool_choice();
  shape_.show_thinking = read_thinking(body_, ThinkingDefault::off, chat_);
  read_output_config();
  chat_.messages = turns_.take();
}

void MessagesParser::check_others() {
  read_stop_sequences();
  chat_.reply.sampling = read_sampling(body_, service_.default_sampling(chat_.enable_thinking));
  request_.stream = body_.boolean("stream").value_or(false);
  chat_.reply.max_tokens = body_.token_count("max_tokens");
  body_.refuse_given({"container", "mcp_servers"});
  // context_management asks to forget parts of the conversation, which would cost the prefix that is already computed.
  body_.ignore({"cache_control", "metadata", "service_tier", "context_management", "betas", "speed", "inference_geo",
                "diagnostics", "anthropic_version", "anthropic_beta", "user_profile_id", "workspace_id"});
  body_.refuse_others();
}

std::variant<ApiRequest, ApiError> MessagesParser::parse() {
  if (faults_.any()) return faults_.first();
  read_prompt();
  check_others();
  if (!chat_.reply.max_tokens) body_.missing("max_tokens", "1 or more");
  if (faults_.any()) return faults_.first();
  request_.format = make_messages_format(service_.model_name(), shape_);
  request_.request = std::move(chat_);
  return std::move(request_);
}

std::variant<ChatRequest, ApiError> MessagesParser::parse_for_counting() {
  if (faults_.any()) return faults_.first();
  read_prompt();
  check_others();
  if (faults_.any()) return faults_.first();
  return std::move(chat_);
}

// The type belongs to the status.
const char* type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case 503:
    case 529: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::variant<ApiRequest, ApiError> parse_messages_request(const OrderedJson& body, const ChatService& service) {
  return MessagesParser(body, service).parse();
}

std::variant<ChatRequest, ApiError> parse_count_tokens(const OrderedJson& body, const ChatService& service) {
  return MessagesParser(body, service).parse_for_counting();
}

OrderedJson messages_error(const ApiError& error) {
  return {{"type", "error"}, {"error", {{"type", type_of(error.status)}, {"message", error.message}}}};
}

const Api& messages_api() {
  static const Api api{parse_messages_request, messages_error};
  return api;
}

}  // namespace lily::server
