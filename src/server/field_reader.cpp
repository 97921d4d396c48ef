#include "server/field_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "server/wire.h"

namespace lily::server {
namespace {

constexpr size_t shown_bytes = 60;

// Cut between characters.
std::string shortened(std::string text) {
  if (text.size() <= shown_bytes) return text;
  size_t end = shown_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
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
    return "the string \"" + shortened(value.get_ref<const std::string&>().substr(0, 2 * shown_bytes)) + "\"";
  }
  return json_text(value);
}

FieldReader::FieldReader(const OrderedJson& object, std::string path, Faults& faults)
    : object_(object), path_(std::move(path)), faults_(faults) {
  if (!object.is_object()) faults_.add(path_.empty() ? "body" : path_, "wrong type", "an object", describe(object));
}

std::string FieldReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void FieldReader::wrong_type(const char* name, const char* expected, const OrderedJson& got) {
  faults_.add(path_of(name), "wrong type", expected, describe(got));
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
  faults_.add(path_of(name), "out of range", fmt::format("{:g} to {:g}", low, high), describe(*value));
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
  const bool fits = number >= -0x1p63 && number < 0x1p63 &&
                    !(value->is_number_unsigned() && value->get<uint64_t>() > std::numeric_limits<int64_t>::max());
  const int64_t whole = !fits ? 0 : value->is_number_float() ? static_cast<int64_t>(number) : value->get<int64_t>();
  if (fits && whole >= low && whole <= high) return whole;
  const std::string range =
      high == std::numeric_limits<int64_t>::max() ? fmt::format("{} or more", low) : fmt::format("{} to {}", low, high);
  faults_.add(path_of(name), "out of range", range, describe(*value));
  return std::nullopt;
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

void FieldReader::ignore(std::initializer_list<const char*> names) { known_.insert(names.begin(), names.end()); }

void FieldReader::refuse(const char* name, const char* why) {
  if (find(name)) faults_.add(path_of(name), why);
}

void FieldReader::refuse_others() {
  if (!object_.is_object()) return;
  for (const auto& [name, value] : object_.items()) {
    if (value.is_null() || known_.contains(name)) continue;
    faults_.add(path_of(name.empty() ? "\"\"" : shortened(name)), "not a field that this server knows");
  }
}

}  // namespace lily::server
