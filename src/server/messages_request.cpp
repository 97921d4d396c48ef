#include <set>
#include <utility>

#include "server/messages.h"
#include "server/request_fields.h"
#include "server/turn_builder.h"

namespace lily::server {
namespace {

class MessagesParser {
 public:
  MessagesParser(const OrderedJson& body, const ChatService& service) : body_(body, "", fault_), service_(service) {}

  std::variant<ApiRequest, ApiError> parse();
  std::variant<ChatRequest, ApiError> parse_for_counting();

 private:
  void read_prompt();
  void read_system(const OrderedJson* system, const std::string& path);
  void read_message(const OrderedJson& message, const std::string& path);
  void read_user_block(const OrderedJson& json, const std::string& path, std::string& text);
  void read_assistant_block(const OrderedJson& json, const std::string& path);
  void read_tool_result(JsonFields& block);
  void read_tools();
  void read_tool_choice();
  void read_thinking();
  void read_output_config();
  void read_stop_sequences();
  void check_others();

  Fault fault_;
  JsonFields body_;
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
void MessagesParser::read_system(const OrderedJson* system, const std::string& path) {
  if (!system) return;
  if (!system->is_array()) {
    std::string text = without_billing_line(read_text(system, path, {}, fault_));
    return text.empty() ? void() : turns_.text(Role::system, std::move(text));
  }
  std::string text;
  for (size_t i = 0; i < system->size() && !fault_; ++i) {
    const std::string block = without_billing_line(read_part((*system)[i], element(path, i), {"text"}, fault_));
    if (!text.empty() && !block.empty()) text += "\n\n";
    text += block;
  }
  if (!text.empty()) turns_.text(Role::system, std::move(text));
}

void MessagesParser::read_message(const OrderedJson& json, const std::string& path) {
  JsonFields message(json, path, fault_);
  const std::string* role = message.choice("role", {"user", "assistant", "system", "developer"});
  if (!role) return message.blame("role", "is required");
  const OrderedJson* content = message.any("content");
  const std::string content_path = message.path("content");
  if (*role == "system" || *role == "developer") return read_system(content, content_path);
  const bool user = *role == "user";
  if (!content || content->is_string()) {
    std::string text = content ? content->get<std::string>() : "";
    return user ? turns_.text(Role::user, std::move(text)) : turns_.reply(text);
  }
  if (!content->is_array()) return message.blame("content", "must be a text or a list of blocks");
  std::string text;
  bool has_text = content->empty();
  for (size_t i = 0; i < content->size() && !fault_; ++i) {
    const OrderedJson& block = (*content)[i];
    if (!user) read_assistant_block(block, element(content_path, i));
    else read_user_block(block, element(content_path, i), text);
    has_text |= block.is_object() && block.contains("type") && block["type"] == "text";
  }
  // After the results that the same message brings.
  if (user && has_text) turns_.text(Role::user, std::move(text));
}

void MessagesParser::read_user_block(const OrderedJson& json, const std::string& path, std::string& text) {
  JsonFields block(json, path, fault_);
  const std::string* type = block.required_string("type");
  if (!type) return;
  if (*type == "tool_result") return read_tool_result(block);
  if (*type != "text") return block.blame("type", "blocks of type \"" + *type + "\" are not supported");
  if (const std::string* piece = block.string("text")) text += *piece;
}

void MessagesParser::read_tool_result(JsonFields& block) {
  const std::string* id = block.required_string("tool_use_id");
  std::string text = read_text(block.any("content"), block.path("content"), {"text"}, fault_);
  if (block.boolean("is_error").value_or(false)) text = text.empty() ? "Error" : "Error: " + text;
  if (id) turns_.result(*id, std::move(text));
}

void MessagesParser::read_assistant_block(const OrderedJson& json, const std::string& path) {
  JsonFields block(json, path, fault_);
  const std::string* type = block.required_string("type");
  if (!type) return;
  if (*type == "text") {
    if (const std::string* text = block.string("text")) turns_.reply(*text);
  } else if (*type == "thinking") {
    if (const std::string* text = block.string("thinking")) turns_.reasoning(*text);
  } else if (*type == "tool_use") {
    ToolCall call;
    if (const std::string* id = block.required_string("id")) call.id = *id;
    if (const std::string* name = block.required_string("name")) call.name = *name;
    if (const OrderedJson* input = block.any("input")) call.arguments = read_arguments(*input);
    turns_.call(std::move(call));
  } else if (*type != "redacted_thinking") {  // which nobody here can read
    block.blame("type", "blocks of type \"" + *type + "\" are not supported");
  }
}

// A function is what has no type, or the type "custom"; all others run on Anthropic's servers.
void MessagesParser::read_tools() {
  const OrderedJson* tools = body_.array("tools");
  std::set<std::string> skipped;
  for (size_t i = 0; tools && i < tools->size() && !fault_; ++i) {
    JsonFields tool((*tools)[i], element("tools", i), fault_);
    const std::string* type = tool.string("type");
    if (fault_) return;
    if (!type || *type == "custom") chat_.tools.push_back(read_function(tool, "input_schema"));
    else skipped.insert(*type);
  }
  warn_of_skipped(skipped, request_);
}

void MessagesParser::read_tool_choice() {
  const OrderedJson* object = body_.object("tool_choice");
  if (!object) return;
  JsonFields choice(*object, "tool_choice", fault_);
  const std::string* type = choice.choice("type", {"auto", "any", "tool", "none"});
  if (!type) return choice.blame("type", "is required");
  ToolChoice& chosen = chat_.tool_choice;
  if (*type == "none") chosen.kind = ToolChoice::Kind::none;
  if (*type == "any") chosen.kind = ToolChoice::Kind::required;
  if (*type == "tool") {
    chosen.kind = ToolChoice::Kind::named;
    if (const std::string* name = choice.required_string("name")) chosen.name = *name;
  }
  chosen.parallel = !choice.boolean("disable_parallel_tool_use").value_or(false);
  choice.refuse_others();
  check_tool_choice(chat_, "tool_choice", fault_);
}

void MessagesParser::read_thinking() {
  ThinkingWish wish;
  if (const OrderedJson* object = body_.object("thinking")) {
    JsonFields thinking(*object, "thinking", fault_);
    const std::string* type = thinking.choice("type", {"enabled", "adaptive", "disabled"});
    if (!type) return thinking.blame("type", "is required");
    wish.says(*type != "disabled");
    wish.budget = thinking.token_count("budget_tokens");
    // Nothing summarises here: "summarized" shows all.
    const std::string* display = thinking.choice("display", {"summarized", "omitted"});
    shape_.show_thinking = !display || *display != "omitted";
    thinking.refuse_others();
  }
  read_template_fields(body_, wish, chat_, fault_);
  wish.apply(false, chat_);
}

void MessagesParser::read_output_config() {
  if (const OrderedJson* object = body_.object("output_config")) {
    JsonFields config(*object, "output_config", fault_);
    config.skip({"effort", "task_budget"});  // the model knows no degrees
    read_format(config.any("format"), "output_config.format", chat_, fault_);
    config.refuse_others();
  }
  read_format(body_.any("output_format"), "output_format", chat_, fault_);  // its older name
}

void MessagesParser::read_stop_sequences() {
  const OrderedJson* stops = body_.array("stop_sequences");
  for (size_t i = 0; stops && i < stops->size(); ++i) {
    const OrderedJson& stop = (*stops)[i];
    if (!stop.is_string() || stop.get_ref<const std::string&>().empty()) {
      return blame(fault_, element("stop_sequences", i), "must be a text that is not empty");
    }
    chat_.reply.splitter.stops.push_back(stop.get<std::string>());
  }
  if (chat_.reply.splitter.stops.size() == 1) shape_.stop = chat_.reply.splitter.stops.front();
}

void MessagesParser::read_prompt() {
  body_.string("model");
  read_system(body_.any("system"), "system");
  const OrderedJson* messages = body_.array("messages");
  if (!messages) return body_.blame("messages", "is required");
  for (size_t i = 0; i < messages->size() && !fault_; ++i) read_message((*messages)[i], element("messages", i));
  read_tools();
  read_tool_choice();
  read_thinking();
  read_output_config();
  chat_.messages = turns_.take();
}

void MessagesParser::check_others() {
  read_stop_sequences();
  read_sampling(body_, service_, chat_, fault_);
  request_.stream = body_.boolean("stream").value_or(false);
  chat_.reply.max_tokens = body_.token_count("max_tokens");
  body_.refuse({"container", "mcp_servers"});
  // context_management asks to forget parts of the conversation, which would cost the prefix that is already computed.
  body_.skip({"cache_control", "metadata", "service_tier", "context_management", "betas", "speed", "inference_geo",
              "diagnostics", "anthropic_version", "anthropic_beta", "user_profile_id", "workspace_id"});
  body_.refuse_others();
}

std::variant<ApiRequest, ApiError> MessagesParser::parse() {
  if (fault_) return *fault_;
  read_prompt();
  check_others();
  if (!chat_.reply.max_tokens) body_.blame("max_tokens", "is required");
  if (fault_) return *fault_;
  request_.format = make_messages_format(service_.model_name(), shape_);
  request_.request = std::move(chat_);
  return std::move(request_);
}

std::variant<ChatRequest, ApiError> MessagesParser::parse_for_counting() {
  if (fault_) return *fault_;
  read_prompt();
  check_others();
  if (fault_) return *fault_;
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
