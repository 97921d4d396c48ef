#include "server/field_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "server/wire.h"

namespace lily::server {
namespace {

constexpr size_t shown_bytes = 60;

bool is_nothing(const OrderedJson& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return !value.is_number() && value.empty();
}

// "a, b or c"
std::string listed(Words words) {
  std::string list;
  for (const std::string_view& word : words) {
    if (!list.empty()) list += &word + 1 == words.end() ? " or " : ", ";
    list += word;
  }
  return list;
}

}  // namespace

void Faults::add(const std::string& param, const std::string& what, const std::string& expected,
                 const std::string& got) {
  if (error_) return;
  error_ = ApiError{.status = 400,
                    .type = "invalid_request_error",
                    .message = Error{.where = param, .what = what, .expected = expected, .got = got}.message(),
                    .param = param};
}

std::string describe(const OrderedJson& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_string()) {
    return "the string \"" + shortened(value.get_ref<const std::string&>(), shown_bytes) + "\"";
  }
  return json_text(value);
}

std::string shortened(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string element(const std::string& list, size_t i) { return list + "[" + std::to_string(i) + "]"; }

FieldReader::FieldReader(const OrderedJson& object, std::string path, Faults& faults)
    : object_(object), path_(std::move(path)), faults_(faults) {
  if (!object.is_object()) faults_.add(path_.empty() ? "body" : path_, "wrong type", "an object", describe(object));
}

std::string FieldReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void FieldReader::fault(const char* name, const std::string& what, const std::string& expected,
                        const std::string& got) {
  faults_.add(path_of(name), what, expected, got);
}

void FieldReader::wrong_type(const char* name, const char* expected, const OrderedJson& got) {
  fault(name, "wrong type", expected, describe(got));
}

const OrderedJson* FieldReader::find(const char* name) {
  known_.insert(name);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::string> FieldReader::text(const char* name) {
  const OrderedJson* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  wrong_type(name, "a string", *value);
  return std::nullopt;
}

std::optional<std::string> FieldReader::choice(const char* name, Words choices) {
  std::optional<std::string> word = text(name);
  if (!word || std::find(choices.begin(), choices.end(), *word) != choices.end()) return word;
  fault(name, "no such choice", listed(choices), describe(*word));
  return std::nullopt;
}

std::string FieldReader::required_text(const char* name) {
  std::string value = text(name).value_or("");
  if (value.empty()) missing(name, "a string that is not empty");
  return value;
}

std::optional<bool> FieldReader::boolean(const char* name) {
  const OrderedJson* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  wrong_type(name, "true or false", *value);
  return std::nullopt;
}

std::optional<double> FieldReader::number(const char* name, double low, double high) {
  const OrderedJson* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) {
    wrong_type(name, "a number", *value);
    return std::nullopt;
  }
  const double number = value->get<double>();
  if (number >= low && number <= high) return number;
  fault(name, "out of range", fmt::format("{:g} to {:g}", low, high), describe(*value));
  return std::nullopt;
}

std::optional<int64_t> FieldReader::integer(const char* name, int64_t low, int64_t high) {
  const OrderedJson* value = find(name);
  if (!value) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : 0.5;
  if (std::trunc(number) != number) {
    wrong_type(name, "a whole number", *value);
    return std::nullopt;
  }
  // Whatever does not fit into 64 bits is beyond every limit; 2^63 is the first such double.
  const bool fits = value->is_number_float() ? number >= -0x1p63 && number < 0x1p63
                                             : !value->is_number_unsigned() || value->get<uint64_t>() >> 63 == 0;
  const int64_t whole = !fits ? 0 : value->is_number_float() ? static_cast<int64_t>(number) : value->get<int64_t>();
  if (fits && whole >= low && whole <= high) return whole;
  const std::string range =
      high == std::numeric_limits<int64_t>::max() ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
  fault(name, "out of range", range, describe(*value));
  return std::nullopt;
}

std::optional<int64_t> FieldReader::token_count(const char* name, int64_t low) {
  constexpr int64_t most = int64_t{1} << 40;  // more than any context
  std::optional<int64_t> count = integer(name, low);
  if (count) *count = std::min(*count, most);
  return count;
}

const OrderedJson* FieldReader::array(const char* name) {
  const OrderedJson* value = find(name);
  if (!value || value->is_array()) return value;
  wrong_type(name, "an array", *value);
  return nullptr;
}

const OrderedJson* FieldReader::object(const char* name) {
  const OrderedJson* value = find(name);
  if (!value || value->is_object()) return value;
  wrong_type(name, "an object", *value);
  return nullptr;
}

std::optional<FieldReader> FieldReader::inner(const char* name) {
  const OrderedJson* value = object(name);
  return value ? std::optional(FieldReader(*value, path_of(name), faults_)) : std::nullopt;
}

void FieldReader::ignore(std::initializer_list<const char*> names) { known_.insert(names.begin(), names.end()); }

void FieldReader::refuse(const char* name, const char* why) {
  if (find(name)) fault(name, why);
}

void FieldReader::refuse_given(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const OrderedJson* value = find(name);
    if (value && !is_nothing(*value)) fault(name, "not supported");
  }
}

void FieldReader::refuse_others() {
  if (!object_.is_object()) return;
  for (const auto& [name, value] : object_.items()) {
    if (value.is_null() || known_.contains(name)) continue;
    faults_.add(path_of(name.empty() ? "\"\"" : shortened(name, shown_bytes)), "not a field that this server knows");
  }
}

}  // namespace lily::server
