#include "runtime/generation_config.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"

namespace lily {
namespace {

using nlohmann::json;

// Reads the keys of one object; the first thing wrong is kept as the error.
class Reader {
 public:
  Reader(const json& object, const std::string& where) : object_(object), where_(where) {}

  void number(const char* key, float& out) {
    if (const json* value = find(key)) value->is_number() ? void(out = value->get<float>()) : fail(key, "a number", *value);
  }

  void count(const char* key, int& out) {
    int64_t wide = out;
    if (const json* value = find(key)) whole(key, *value, wide);
    out = static_cast<int>(wide);
  }

  void flag(const char* key, bool& out) {
    if (const json* value = find(key)) {
      value->is_boolean() ? void(out = value->get<bool>()) : fail(key, "true or false", *value);
    }
  }

  void ids(const char* key, std::vector<int32_t>& out) {
    const json* value = find(key);
    if (!value) return;
    for (const json& item : value->is_array() ? *value : json::array({*value})) {
      int64_t id = 0;
      whole(key, item, id);
      out.push_back(static_cast<int32_t>(id));
    }
  }

  Result<void> result() const { return failed_ ? Result<void>(error_) : Result<void>(); }

 private:
  const json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  void whole(const char* key, const json& value, int64_t& out) {
    constexpr int64_t largest = std::numeric_limits<int32_t>::max();
    const bool good = value.is_number_integer() && value >= 0 && value <= largest;
    good ? void(out = value.get<int64_t>()) : fail(key, "a whole number from 0 on", value);
  }

  void fail(const char* key, const char* expected, const json& value) {
    if (failed_) return;
    failed_ = true;
    error_ = {.where = where_ + ": " + key, .expected = expected, .got = value.dump().substr(0, 40)};
  }

  const json& object_;
  const std::string& where_;
  bool failed_ = false;
  Error error_;
};

}  // namespace

Result<GenerationConfig> parse_generation_config(std::string_view text, const std::string& where) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return Error{.where = where, .what = "not a JSON object"};
  GenerationConfig config;
  SamplingParams& sampling = config.sampling;
  bool do_sample = true;
  Reader reader(object, where);
  reader.flag("do_sample", do_sample);
  reader.number("temperature", sampling.temperature);
  reader.count("top_k", sampling.top_k);
  reader.number("top_p", sampling.top_p);
  reader.number("min_p", sampling.min_p);
  reader.number("repetition_penalty", sampling.repetition_penalty);
  reader.number("presence_penalty", sampling.presence_penalty);
  reader.number("frequency_penalty", sampling.frequency_penalty);
  reader.ids("eos_token_id", config.eos_token_ids);
  LILY_CHECK(reader.result());
  if (!do_sample) sampling.temperature = 0;
  if (Result<void> checked = check(sampling); !checked) {
    Error error = checked.error();
    error.where = where + ": " + error.where;
    return error;
  }
  return config;
}

Result<GenerationConfig> load_generation_config(const std::string& directory) {
  const std::string path = directory + "/generation_config.json";
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return GenerationConfig{};
  LILY_TRY(const std::string text, read_file(path));
  return parse_generation_config(text, path);
}

std::vector<int32_t> unite(std::vector<int32_t> ids, const std::vector<int32_t>& others) {
  ids.insert(ids.end(), others.begin(), others.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace lily
