#include "text/schema_keywords.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "text/number_state.h"
#include "text/utf8.h"

namespace lily {
namespace {

template <size_t n>
bool is_one_of(std::string_view name, const std::array<std::string_view, n>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 14> annotations = {
    "title",    "description", "default",  "examples",  "example", "$schema",       "$id",
    "$comment", "deprecated",  "readOnly", "writeOnly", "format",  "discriminator", "externalDocs"};
constexpr std::array<std::string_view, 2> definitions = {"$defs", "definitions"};
constexpr std::array<std::string_view, 3> of_objects = {"properties", "required", "additionalProperties"};
constexpr std::array<std::string_view, 4> of_arrays = {"items", "prefixItems", "minItems", "maxItems"};
constexpr std::array<std::string_view, 2> of_strings = {"minLength", "maxLength"};
constexpr std::array<std::string_view, 5> of_numbers = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                                        "multipleOf"};
constexpr std::array<std::string_view, 8> general = {"type",  "enum",  "const", "anyOf",
                                                     "oneOf", "allOf", "$ref",  "nullable"};
constexpr std::array<std::string_view, 7> types = {"object", "array", "string", "number", "integer", "boolean", "null"};

template <size_t n>
bool has_any(const OrderedJson& schema, const std::array<std::string_view, n>& names) {
  return std::any_of(names.begin(), names.end(), [&](auto name) { return schema.contains(name); });
}

// A number in units of 10^-decimals, clamped to what can be written.
struct Units {
  int64_t value;
  bool exact;  // else the next unit towards minus infinity
};

Units units_of(const OrderedJson& number, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const double value = number.get<double>();
  constexpr auto limit = max_units + 1;
  if (value * scale >= static_cast<double>(limit)) return {limit, true};
  if (value * scale <= -static_cast<double>(limit)) return {-limit, true};
  if (number.is_number_integer()) return {number.get<int64_t>() * static_cast<int64_t>(scale), true};
  // What was written in decimal is exact if dividing gives the same double again.
  const double nearest = std::round(value * scale);
  if (nearest / scale == value) return {static_cast<int64_t>(nearest), true};
  return {static_cast<int64_t>(std::floor(value * scale)), false};
}

Result<std::optional<Units>> bound(const OrderedJson& schema, const char* name, int decimals, const std::string& path) {
  const auto at = schema.find(name);
  if (at == schema.end()) return std::optional<Units>{};
  if (!at->is_number()) return Error{join_path(path, name), "wrong value", "a number", at->type_name()};
  return std::optional(units_of(*at, decimals));
}

// Decimals that multipleOf leaves; 6 without it, the most that a number with a range has.
Result<int> decimals_of(const OrderedJson& schema, const std::string& path) {
  const auto at = schema.find("multipleOf");
  if (at == schema.end()) return 6;
  for (int decimals = 0; decimals <= 6; ++decimals) {
    if (at->is_number() && at->get<double>() == 1 / std::pow(10.0, decimals)) return decimals;
  }
  return Error{join_path(path, "multipleOf"), "this value is not supported", "1, 0.1, 0.01, ... or 0.000001",
               at->is_number() ? at->dump() : at->type_name()};
}

}  // namespace

KeywordKind kind_of_keyword(std::string_view name) {
  if (is_one_of(name, annotations) || name.starts_with("x-")) return KeywordKind::annotation;
  if (is_one_of(name, definitions)) return KeywordKind::definitions;
  const bool known = is_one_of(name, of_objects) || is_one_of(name, of_arrays) || is_one_of(name, of_strings) ||
                     is_one_of(name, of_numbers) || is_one_of(name, general);
  return known ? KeywordKind::assertion : KeywordKind::unknown;
}

std::string join_path(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

size_t count_values(const OrderedJson& document) {
  std::vector<std::pair<const OrderedJson*, size_t>> open = {{&document, 1}};
  size_t count = 0;
  while (!open.empty()) {
    const auto [value, level] = open.back();
    open.pop_back();
    if (++count > max_schema_values || level > max_schema_levels) return max_schema_values + 1;
    if (!value->is_structured()) continue;
    if (value->size() > max_schema_values) return max_schema_values + 1;
    for (const OrderedJson& below : *value) open.push_back({&below, level + 1});
  }
  return count;
}

Result<std::vector<std::string>> types_of(const OrderedJson& schema, const std::string& path) {
  std::vector<std::string> found;
  const auto at = schema.find("type");
  if (at == schema.end()) {
    if (has_any(schema, of_objects)) found.push_back("object");
    if (has_any(schema, of_arrays)) found.push_back("array");
    if (has_any(schema, of_strings)) found.push_back("string");
    if (has_any(schema, of_numbers)) found.push_back("number");
    return found;
  }
  const std::string where = join_path(path, "type"),
                    expected = "object, array, string, number, integer, boolean or null";
  if (!at->is_string() && !at->is_array())
    return Error{where, "wrong value", "a type or a list of types", at->type_name()};
  for (const OrderedJson& type : at->is_array() ? *at : OrderedJson::array({*at})) {
    if (!type.is_string()) return Error{where, "wrong value", expected, type.type_name()};
    const auto& name = type.get_ref<const std::string&>();
    if (!is_one_of(name, types)) return Error{where, "unknown type", expected, name};
    found.push_back(name);
  }
  if (found.empty()) return Error{where, "an empty list allows nothing", "", ""};
  return found;
}

bool has_type(const OrderedJson& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return value.is_number() && (value.is_number_integer() || std::floor(value.get<double>()) == value.get<double>());
}

Result<uint32_t> count_keyword(const OrderedJson& schema, const char* name, uint32_t otherwise,
                               const std::string& path) {
  const auto at = schema.find(name);
  if (at == schema.end()) return otherwise;
  const double value = at->is_number() ? at->get<double>() : -1;
  if (value < 0 || value != std::floor(value)) {
    return Error{join_path(path, name), "wrong value", "a whole number, 0 or more",
                 at->is_number() ? at->dump() : at->type_name()};
  }
  return value >= unlimited ? unlimited : static_cast<uint32_t>(value);
}

Result<StringNode> string_node(const OrderedJson& schema, const std::string& path) {
  LILY_TRY(const uint32_t min, count_keyword(schema, "minLength", 0, path));
  LILY_TRY(const uint32_t max, count_keyword(schema, "maxLength", unlimited, path));
  return StringNode{min, max};
}

Result<NumberNode> number_node(const OrderedJson& schema, bool integer, const std::string& path) {
  LILY_TRY(int decimals, decimals_of(schema, path));
  if (integer) decimals = 0;
  LILY_TRY(const auto minimum, bound(schema, "minimum", decimals, path));
  LILY_TRY(const auto maximum, bound(schema, "maximum", decimals, path));
  LILY_TRY(const auto above, bound(schema, "exclusiveMinimum", decimals, path));
  LILY_TRY(const auto below, bound(schema, "exclusiveMaximum", decimals, path));
  if (!integer && !minimum && !maximum && !above && !below && !schema.contains("multipleOf")) return NumberNode{};
  NumberNode node{true, decimals, -max_units, max_units};
  if (minimum) node.low = std::max(node.low, minimum->value + !minimum->exact);
  if (above) node.low = std::max(node.low, above->value + 1);
  if (maximum) node.high = std::min(node.high, maximum->value);
  if (below) node.high = std::min(node.high, below->value - below->exact);
  return node;
}

}  // namespace lily
