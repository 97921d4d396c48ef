#include "runtime/generation_config.h"

#include <filesystem>

#include "base/mapped_file.h"
#include "model/json.h"

namespace lily {
namespace {

using nlohmann::json;

// Reads the fields of one object; the first thing wrong sticks, so that a list of fields reads as a list.
class FieldReader {
 public:
  FieldReader(const json& object, const std::string& where) : object_(object), where_(where) {}

  void read(const char* key, float& out) {
    if (const json* value = find(key, &json::is_number, "a number")) out = value->get<float>();
  }
  void read(const char* key, bool& out) {
    if (const json* value = find(key, &json::is_boolean, "true or false")) out = value->get<bool>();
  }
  void read(const char* key, int& out) {
    const json* value = find(key, &json::is_number_integer, "a whole number");
    if (!value) return;
    if (*value >= 0 && *value <= max_count) {
      out = value->get<int>();
    } else {
      fail(key, "a whole number from 0 to " + std::to_string(max_count), *value);
    }
  }

  const Result<void>& result() const { return result_; }

 private:
  static constexpr int max_count = 1 << 30;

  const json* find(const char* key, bool (json::*has_kind)() const noexcept, const char* expected) {
    const auto field = object_.find(key);
    if (field == object_.end() || field->is_null()) return nullptr;
    if (((*field).*has_kind)()) return &*field;
    fail(key, expected, *field);
    return nullptr;
  }

  void fail(const char* key, std::string expected, const json& value) {
    if (result_) result_ = Error{where_ + ": " + key, "wrong value", std::move(expected), short_form(value)};
  }

  const json& object_;
  const std::string& where_;
  Result<void> result_;
};

}  // namespace

Result<SamplingParams> parse_generation_config(std::string_view text, const std::string& where) {
  LILY_TRY(const json object, parse_json(text, where));
  if (!object.is_object()) return Error{where, "wrong JSON", "an object", kind_of(object)};
  SamplingParams params;
  bool do_sample = true;
  FieldReader reader(object, where);
  reader.read("do_sample", do_sample);
  reader.read("temperature", params.temperature);
  reader.read("top_k", params.top_k);
  reader.read("top_p", params.top_p);
  reader.read("min_p", params.min_p);
  reader.read("repetition_penalty", params.repetition_penalty);
  reader.read("presence_penalty", params.presence_penalty);
  reader.read("frequency_penalty", params.frequency_penalty);
  LILY_CHECK(reader.result());
  if (!do_sample) params.temperature = 0;
  if (Result<void> checked = check(params); !checked) {
    Error error = checked.error();
    error.where = where + ": " + error.where;
    return error;
  }
  return params;
}

Result<SamplingParams> load_generation_config(const std::string& directory) {
  const std::string path = directory + "/generation_config.json";
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return SamplingParams{};
  LILY_TRY(const std::string text, read_file(path));
  return parse_generation_config(text, path);
}

}  // namespace lily
