#include "text/python_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "text/json_escape.h"

namespace lily {
namespace {

// The shortest digits that give the number back; an exponent below 1e-4 and from 1e16 on.
std::string float_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
  std::array<char, 64> buffer;
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto [end, failure] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                            plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer.data(), end);
  if (plain && text.find('.') == text.npos) text += ".0";
  return text;
}

void append_json(std::string& text, const OrderedJson& value);

void append_object(std::string& text, const OrderedJson& object) {
  std::string_view separator = "{";
  for (const auto& [key, member] : object.items()) {
    text += separator;
    text += json_quoted(key);
    text += ": ";
    append_json(text, member);
    separator = ", ";
  }
  text += object.empty() ? "{}" : "}";
}

void append_array(std::string& text, const OrderedJson& array) {
  std::string_view separator = "[";
  for (const OrderedJson& element : array) {
    text += separator;
    append_json(text, element);
    separator = ", ";
  }
  text += array.empty() ? "[]" : "]";
}

void append_json(std::string& text, const OrderedJson& value) {
  if (value.is_object()) {
    append_object(text, value);
  } else if (value.is_array()) {
    append_array(text, value);
  } else if (value.is_string()) {
    text += json_quoted(value.get_ref<const std::string&>());
  } else if (value.is_number_float()) {
    text += float_text(value.get<double>());
  } else if (value.is_number_unsigned()) {
    text += std::to_string(value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    text += std::to_string(value.get<int64_t>());
  } else if (value.is_boolean()) {
    text += value.get<bool>() ? "true" : "false";
  } else {
    text += "null";
  }
}

}  // namespace

std::string python_json(const OrderedJson& value) {
  std::string text;
  append_json(text, value);
  return text;
}

std::string python_str(const OrderedJson& scalar) {
  if (scalar.is_string()) return scalar.get<std::string>();
  if (scalar.is_boolean()) return scalar.get<bool>() ? "True" : "False";
  if (scalar.is_null()) return "None";
  return python_json(scalar);
}

}  // namespace lily
