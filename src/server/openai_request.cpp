#include "server/openai_request.h"

#include <charconv>
#include <random>

namespace lily::server {
namespace {

constexpr size_t stop_limit = 16;
constexpr int64_t choice_limit = 8;

void read_sampling(FieldReader& fields, SamplingParams& params) {
  const auto set = [&](const char* name, float& value, double low, double high) {
    if (const auto number = fields.number(name, low, high)) value = static_cast<float>(*number);
  };
  set("temperature", params.temperature, 0, 2);
  set("top_p", params.top_p, 0, 1);
  set("min_p", params.min_p, 0, 1);
  set("presence_penalty", params.presence_penalty, -2, 2);
  set("frequency_penalty", params.frequency_penalty, -2, 2);
  set("repetition_penalty", params.repetition_penalty, 0.01, 10);
  // Many clients write -1 for "all".
  if (const auto k = fields.integer("top_k", -1, 1 << 30)) params.top_k = static_cast<int>(std::max<int64_t>(*k, 0));
  // Only the likeliest token reaches 0; the sampler wants a number above it.
  if (params.top_p == 0) params.top_p = std::numeric_limits<float>::min();
  const auto seed = fields.integer("seed", std::numeric_limits<int64_t>::min());
  params.seed = seed ? static_cast<uint64_t>(*seed) : uint64_t{std::random_device{}()} << 32 | std::random_device{}();
}

void read_logit_bias(FieldReader& fields, int32_t tokens, SamplingParams& params) {
  const OrderedJson* object = fields.object("logit_bias");
  if (!object) return;
  const std::string path = fields.path_of("logit_bias");
  FieldReader entries(*object, path, fields.faults());
  for (const auto& [name, value] : object->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc{} || end != name.data() + name.size() || id < 0 || id >= tokens) {
      return fields.faults().add(path, "no such token", "ids from 0 to " + std::to_string(tokens - 1),
                                 name.substr(0, 40));
    }
    if (const auto bias = entries.number(name.c_str(), -100, 100)) params.logit_bias[id] = static_cast<float>(*bias);
  }
}

void read_stops(FieldReader& fields, std::vector<std::string>& stops) {
  const OrderedJson* stop = fields.find("stop");
  if (!stop) return;
  const std::string path = fields.path_of("stop");
  const OrderedJson list = stop->is_array() ? *stop : OrderedJson::array({*stop});
  if (list.size() > stop_limit) {
    fields.faults().add(path, "too many", "at most " + std::to_string(stop_limit), std::to_string(list.size()));
  }
  for (const OrderedJson& item : list) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
      return fields.faults().add(path, "wrong type", "strings that are not empty", describe(item));
    }
    stops.push_back(item.get<std::string>());
  }
}

void read_limits(FieldReader& fields, ReplyOptions& reply) {
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {  // the latter wins
    const auto limit = fields.integer(name, -1);
    if (!limit) continue;
    if (*limit == 0) fields.faults().add(fields.path_of(name), "out of range", "1 or more, or -1 for no limit", "0");
    reply.max_tokens = *limit < 0 ? std::nullopt : limit;
  }
}

bool read_stream_options(FieldReader& fields) {
  const OrderedJson* object = fields.object("stream_options");
  if (!object) return false;
  FieldReader options(*object, fields.path_of("stream_options"), fields.faults());
  const bool include_usage = options.boolean("include_usage").value_or(false);
  options.ignore({"include_obfuscation"});
  options.refuse_others();
  return include_usage;
}

}  // namespace

CommonFields read_common(FieldReader& fields, const ChatService& service, ReplyOptions& reply) {
  CommonFields common;
  fields.text("model");
  common.n = static_cast<int>(fields.integer("n", 1, choice_limit).value_or(1));
  common.stream = fields.boolean("stream").value_or(false);
  common.include_usage = read_stream_options(fields);
  read_limits(fields, reply);
  read_sampling(fields, reply.sampling);
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
