// POST /v1/completions: the request.
#include "server/api.h"
#include "server/completion_format.h"
#include "server/field_reader.h"
#include "server/openai_request.h"

namespace lily::server {
namespace {

// [1, 2, 3], every one a token.
void read_ids(const OrderedJson& list, const ChatService& service, Faults& faults, CompletionRequest& request) {
  const int32_t tokens = service.tokenizer().size();
  for (const OrderedJson& item : list) {
    const bool good = item.is_number_integer() && item >= 0 && item < tokens;
    if (!good)
      return faults.add("prompt", "no such token", "ids from 0 to " + std::to_string(tokens - 1), describe(item));
    request.ids.push_back(item.get<int32_t>());
  }
}

// One prompt: a text or ids, also as the only one of a list.
void read_prompt(FieldReader& fields, const ChatService& service, CompletionRequest& request) {
  const OrderedJson* prompt = fields.find("prompt");
  if (!prompt) return fields.missing("prompt", "a string or an array of token ids");
  if (prompt->is_array() && !prompt->empty() && !(*prompt)[0].is_number()) {
    if (prompt->size() > 1) return fields.fault("prompt", "too many", "one prompt", describe(*prompt));
    prompt = &(*prompt)[0];
  }
  if (prompt->is_string()) request.prompt = prompt->get<std::string>();
  else if (prompt->is_array() && !prompt->empty()) read_ids(*prompt, service, fields.faults(), request);
  else fields.wrong_type("prompt", "a string or an array of token ids", *prompt);
}

std::variant<ApiRequest, ApiError> parse_completion_request(const OrderedJson& body, const ChatService& service) {
  Faults faults;
  FieldReader fields(body, "", faults);
  ApiRequest parsed;
  CompletionRequest request;
  read_prompt(fields, service, request);
  const CommonFields common = read_common(fields, service, false, request.reply);
  if (const auto top = fields.integer("logprobs", 0, 20)) request.reply.top_logprobs = static_cast<int>(*top);
  fields.refuse_given({"echo", "suffix"});
  fields.integer("best_of", 1, 1);
  fields.refuse_others();
  if (faults.any()) return faults.first();
  parsed.n = common.n;
  parsed.stream = common.stream;
  parsed.format = make_completion_format(
      service,
      {.choices = common.n, .include_usage = common.include_usage, .logprobs = request.reply.top_logprobs.has_value()});
  parsed.request = std::move(request);
  return parsed;
}

}  // namespace

const Api& completions_api() {
  static const Api api{parse_completion_request, openai_error};
  return api;
}

}  // namespace lily::server
