// POST /v1/chat/completions: the request.
#include "server/api.h"
#include "server/chat_format.h"
#include "server/chat_messages.h"
#include "server/field_reader.h"
#include "server/openai_request.h"
#include "server/request_fields.h"
#include "server/thinking.h"

namespace lily::server {
namespace {

// The function stands in an object of its own; some clients leave that out.
void read_choice(FieldReader& fields, ChatRequest& request) {
  auto choice = read_tool_choice(fields, request.tool_choice);
  if (!choice) return check_tool_choice(request, "tool_choice", fields.faults());
  choice->choice("type", {"function"});
  auto function = choice->inner("function");
  FieldReader& holder = function ? *function : *choice;
  request.tool_choice.kind = ToolChoice::Kind::named;
  request.tool_choice.name = holder.required_text("name");
  check_tool_choice(request, holder.path_of("name"), fields.faults());
}

void read_logprobs(FieldReader& fields, ReplyOptions& reply) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (wanted) reply.top_logprobs = static_cast<int>(top.value_or(0));
  else if (top.value_or(0) > 0) fields.fault("top_logprobs", "needs logprobs", "\"logprobs\": true");
}

// Fields that OpenAI has and that would change the reply.
void refuse_unsupported(FieldReader& fields) {
  fields.refuse("functions", "replaced by tools");
  fields.refuse("function_call", "replaced by tool_choice");
  fields.refuse("audio", "only text can be written");
  fields.refuse("prediction", "not supported");
  fields.refuse("web_search_options", "not supported");
  if (const OrderedJson* modalities = fields.array("modalities"); modalities && *modalities != OrderedJson({"text"})) {
    fields.fault("modalities", "only text can be written", "[\"text\"]", describe(*modalities));
  }
  fields.choice("verbosity", {"medium"});
}

std::variant<ApiRequest, ApiError> parse_chat_request(const OrderedJson& body, const ChatService& service) {
  Faults faults;
  FieldReader fields(body, "", faults);
  ApiRequest parsed;
  ChatRequest request;
  const OrderedJson* messages = fields.array("messages");
  if (!messages || messages->empty()) fields.missing("messages", "an array of at least one message");
  if (messages) request.messages = read_chat_messages(*messages, "messages", faults);
  read_thinking(fields, ThinkingDefault::on, request);
  const CommonFields common = read_common(fields, service, request.enable_thinking, request.reply);
  read_logprobs(fields, request.reply);
  read_tools(fields, ToolForm::nested, request, parsed.warnings);
  read_choice(fields, request);
  read_format(fields, "response_format", "json_schema", request);
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
  static const Api api{parse_chat_request, openai_error};
  return api;
}

}  // namespace lily::server
