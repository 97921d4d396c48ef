#include "server/openai_reply.h"

#include <chrono>
#include <cmath>

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

const char* finish_reason(const Reply& reply, bool called) {
  if (reply.finish == Finish::length || reply.finish == Finish::context_full) return "length";
  return called ? "tool_calls" : "stop";
}

OrderedJson envelope(const std::string& id, const char* object, int64_t created, const ChatService& service) {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", service.model_name()},
          {"system_fingerprint", "lily"}};
}

int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace lily::server
