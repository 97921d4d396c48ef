#include "server/openai_reply.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "server/ids.h"
#include "server/openai_request.h"
#include "server/reply_shape.h"
#include "server/wire.h"

namespace lily::server {

void ReplyTotals::add(const Reply& reply) {
  if (first_) {
    sum_.prompt_tokens = reply.prompt_tokens;
    sum_.reused_tokens = reply.reused_tokens;
  }
  first_ = false;
  sum_.prefilled_tokens += reply.prefilled_tokens;
  sum_.prefill_seconds += reply.prefill_seconds;
  sum_.decoded_tokens += reply.decoded_tokens;
  sum_.decode_seconds += reply.decode_seconds;
  sum_.reasoning_tokens += reply.reasoning_tokens;
  completion_tokens_ += static_cast<int64_t>(reply.tokens.size());
}

OrderedJson ReplyTotals::usage() const {
  return {{"prompt_tokens", sum_.prompt_tokens},
          {"completion_tokens", completion_tokens_},
          {"total_tokens", sum_.prompt_tokens + completion_tokens_},
          {"prompt_tokens_details", {{"cached_tokens", sum_.reused_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", sum_.reasoning_tokens}}}};
}

OrderedJson ReplyTotals::timings() const {
  return {{"cache_n", sum_.reused_tokens},
          {"prompt_n", sum_.prefilled_tokens},
          {"prompt_ms", 1e3 * sum_.prefill_seconds},
          {"prompt_per_second", sum_.prefill_rate()},
          {"predicted_n", completion_tokens_},
          {"predicted_ms", 1e3 * sum_.decode_seconds},
          {"predicted_per_second", sum_.decode_rate()}};
}

double finite_logprob(float logprob) { return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0; }

OrderedJson token_logprob(const Tokenizer& tokenizer, int32_t id, float logprob) {
  const std::string_view bytes = tokenizer.bytes_of(id);
  OrderedJson list = OrderedJson::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return {{"token", std::string(bytes)}, {"logprob", finite_logprob(logprob)}, {"bytes", std::move(list)}};
}

OpenAiFormat::OpenAiFormat(const ChatService& service, const FormatOptions& options, const FormatNames& names)
    : service_(service),
      options_(options),
      names_(names),
      id_(new_id(names.id_prefix)),
      created_(unix_time()),
      reasons_(static_cast<size_t>(options.choices)) {}

OrderedJson OpenAiFormat::envelope(const char* object, OrderedJson choices) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", service_.model_name()},
          {"system_fingerprint", "lily"},
          {"choices", std::move(choices)}};
}

OrderedJson OpenAiFormat::entry_of(int index, const OrderedJson& fields) const {
  const std::string& reason = reasons_[static_cast<size_t>(index)];
  OrderedJson entry = {{"index", index}};
  entry.update(fields);
  entry["finish_reason"] = reason.empty() ? OrderedJson() : OrderedJson(reason);
  return entry;
}

OrderedJson OpenAiFormat::event_of(int index, const OrderedJson& fields) const {
  OrderedJson event = envelope(names_.event, OrderedJson::array({entry_of(index, fields)}));
  if (options_.include_usage) event["usage"] = nullptr;
  return event;
}

void OpenAiFormat::finish(int index, const Reply& reply, std::vector<SseEvent>& out) {
  reasons_[static_cast<size_t>(index)] = is_cut(reply) ? "length" : called(index) ? "tool_calls" : "stop";
  totals_.add(reply);
  OrderedJson event = event_of(index, last(index));
  if (++finished_ == options_.choices) event["timings"] = totals_.timings();
  out.push_back({"", json_text(event)});
}

void OpenAiFormat::end(std::vector<SseEvent>& out) {
  if (options_.include_usage) {
    OrderedJson event = envelope(names_.event, OrderedJson::array());
    event["usage"] = totals_.usage();
    out.push_back({"", json_text(event)});
  }
  out.push_back({"", "[DONE]"});
}

void OpenAiFormat::fail(const ApiError& error, std::vector<SseEvent>& out) {
  out.push_back({"", json_text(openai_error(error))});
}

OrderedJson OpenAiFormat::document() {
  OrderedJson choices = OrderedJson::array();
  for (int i = 0; i < options_.choices; ++i) choices.push_back(entry_of(i, whole(i)));
  OrderedJson document = envelope(names_.document, std::move(choices));
  document["usage"] = totals_.usage();
  document["timings"] = totals_.timings();
  return document;
}

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace lily::server
