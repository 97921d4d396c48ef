#include "server/json_fields.h"

#include <algorithm>
#include <cmath>

namespace lily::server {
namespace {

constexpr int max_depth = 100;  // the destructor of a deeper value is fine, but what copies and prints it is recursive

bool is_nested_within(std::string_view text, int limit) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

bool is_nothing(const OrderedJson& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return !value.is_number() && value.empty();
}

std::optional<int64_t> whole_number(const OrderedJson& number) {
  if (number.is_number_unsigned()) {
    const uint64_t value = number.get<uint64_t>();
    return value >> 63 ? std::nullopt : std::optional(static_cast<int64_t>(value));
  }
  if (number.is_number_integer()) return number.get<int64_t>();
  const double value = number.get<double>();
  if (std::abs(value) >= 0x1p53 || value != std::floor(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::string quoted_list(std::initializer_list<std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) (list += list.empty() ? "\"" : ", \"").append(word) += '"';
  return list;
}

}  // namespace

void blame(Fault& fault, const std::string& param, const std::string& problem) {
  if (fault) return;
  const std::string name = shortened(param);
  fault = ApiError{.status = 400,
                   .type = "invalid_request_error",
                   .message = name.empty() ? shortened(problem) : name + ": " + shortened(problem),
                   .param = name};
}

std::string shortened(const std::string& text) {
  constexpr size_t limit = 400;
  if (text.size() <= limit) return text;
  size_t end = limit;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // between characters
  return text.substr(0, end) + "...";
}

std::optional<OrderedJson> parse_inner_json(std::string_view text) {
  if (!is_nested_within(text, max_depth)) return std::nullopt;
  OrderedJson value = OrderedJson::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::string element(const std::string& list, size_t i) { return list + "[" + std::to_string(i) + "]"; }

std::string to_text(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

JsonFields::JsonFields(const OrderedJson& object, std::string path, Fault& fault)
    : object_(object), path_(std::move(path)), fault_(fault) {
  if (!object.is_object()) server::blame(fault_, path_, "must be an object");
}

std::string JsonFields::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

const OrderedJson* JsonFields::any(std::string_view key) {
  known_.push_back(key);
  if (!object_.is_object()) return nullptr;
  const auto field = object_.find(key);
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

const OrderedJson* JsonFields::of_kind(std::string_view key, bool (OrderedJson::*is_kind)() const noexcept,
                                       const char* kind) {
  const OrderedJson* value = any(key);
  if (!value || (value->*is_kind)()) return value;
  blame(key, std::string("must be ") + kind);
  return nullptr;
}

const OrderedJson* JsonFields::object(std::string_view key) {
  return of_kind(key, &OrderedJson::is_object, "an object");
}

const OrderedJson* JsonFields::array(std::string_view key) { return of_kind(key, &OrderedJson::is_array, "an array"); }

const std::string* JsonFields::string(std::string_view key) {
  const OrderedJson* value = of_kind(key, &OrderedJson::is_string, "a string");
  return value ? &value->get_ref<const std::string&>() : nullptr;
}

std::optional<bool> JsonFields::boolean(std::string_view key) {
  const OrderedJson* value = of_kind(key, &OrderedJson::is_boolean, "true or false");
  return value ? std::optional(value->get<bool>()) : std::nullopt;
}

std::optional<double> JsonFields::number(std::string_view key) {
  const OrderedJson* value = of_kind(key, &OrderedJson::is_number, "a number");
  return value ? std::optional(value->get<double>()) : std::nullopt;
}

std::optional<int64_t> JsonFields::integer(std::string_view key, int64_t least) {
  const OrderedJson* value = of_kind(key, &OrderedJson::is_number, "a whole number");
  if (!value) return std::nullopt;
  const std::optional<int64_t> whole = whole_number(*value);
  if (whole && *whole >= least) return whole;
  blame(key, "must be a whole number of " + std::to_string(least) + " or more");
  return std::nullopt;
}

std::optional<int64_t> JsonFields::token_count(std::string_view key) {
  std::optional<int64_t> count = integer(key, 1);
  if (count) *count = std::min(*count, int64_t{1} << 40);  // more than any context, and safe to add to
  return count;
}

const std::string* JsonFields::required_string(std::string_view key) {
  const std::string* value = string(key);
  if (!value || value->empty()) blame(key, "is required, and not empty");
  return value;
}

const std::string* JsonFields::choice(std::string_view key, std::initializer_list<std::string_view> choices) {
  const std::string* value = string(key);
  if (!value || std::find(choices.begin(), choices.end(), *value) != choices.end()) return value;
  blame(key, "must be one of " + quoted_list(choices));
  return nullptr;
}

void JsonFields::refuse(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const OrderedJson* value = any(key);
    if (value && !is_nothing(*value)) blame(key, "is not supported");
  }
}

void JsonFields::refuse_others() {
  if (!object_.is_object()) return;
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) blame(key, "is not a known field");
  }
}

}  // namespace lily::server
