#include "server/openai_request.h"

#include <charconv>

#include "server/request_fields.h"

namespace lily::server {
namespace {

constexpr size_t stop_limit = 16;
constexpr int64_t choice_limit = 8;

void read_logit_bias(FieldReader& fields, int32_t tokens, SamplingParams& params) {
  auto entries = fields.inner("logit_bias");
  if (!entries) return;
  for (const auto& [name, value] : fields.object("logit_bias")->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc{} || end != name.data() + name.size() || id < 0 || id >= tokens) {
      return fields.fault("logit_bias", "no such token", "ids from 0 to " + std::to_string(tokens - 1), describe(name));
    }
    if (const auto bias = entries->number(name.c_str(), -100, 100)) params.logit_bias[id] = static_cast<float>(*bias);
  }
}

void read_stops(FieldReader& fields, std::vector<std::string>& stops) {
  const OrderedJson* stop = fields.find("stop");
  if (!stop) return;
  const OrderedJson list = stop->is_array() ? *stop : OrderedJson::array({*stop});
  if (list.size() > stop_limit) {
    fields.fault("stop", "too many", "at most " + std::to_string(stop_limit), std::to_string(list.size()));
  }
  for (const OrderedJson& item : list) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
      return fields.wrong_type("stop", "strings that are not empty", item);
    }
    stops.push_back(item.get<std::string>());
  }
}

void read_limits(FieldReader& fields, ReplyOptions& reply) {
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {  // the latter wins
    const auto limit = fields.token_count(name, -1);
    if (!limit) continue;
    if (*limit == 0) fields.fault(name, "out of range", "1 or more, or -1 for no limit", "0");
    reply.max_tokens = *limit < 0 ? std::nullopt : limit;
  }
}

}  // namespace

CommonFields read_common(FieldReader& fields, const ChatService& service, bool thinking, ReplyOptions& reply) {
  CommonFields common;
  fields.text("model");
  common.n = static_cast<int>(fields.integer("n", 1, choice_limit).value_or(1));
  common.stream = fields.boolean("stream").value_or(false);
  common.include_usage = read_stream_options(fields);
  read_limits(fields, reply);
  reply.sampling = read_sampling(fields, service.default_sampling(thinking));
  read_logit_bias(fields, service.tokenizer().size(), reply.sampling);
  read_stops(fields, reply.splitter.stops);
  // These say something about the request, not about the reply.
  fields.ignore(
      {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  return common;
}

OrderedJson openai_error(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? OrderedJson() : OrderedJson(text); };
  return {{"error",
           {{"message", error.message},
            {"type", error.type},
            {"param", or_null(error.param)},
            {"code", or_null(error.code)}}}};
}

}  // namespace lily::server
