#include "text/tool_schema.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "text/json_escape.h"
#include "text/python_json.h"
#include "text/python_literal.h"

namespace lily {
namespace {

constexpr int max_schemas = 256;  // looked at for one parameter: references may go in circles

const OrderedJson* member(const OrderedJson& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// "#/$defs/Place", from the root of the function's schema.
const OrderedJson* follow(const OrderedJson& root, std::string_view reference) {
  if (!reference.starts_with('#')) return nullptr;
  const OrderedJson* at = &root;
  for (reference.remove_prefix(1); at && !reference.empty();) {
    if (reference[0] != '/') return nullptr;
    const size_t end = std::min(reference.find('/', 1), reference.size());
    std::string key;
    for (size_t i = 1; i < end; ++i) {
      const bool escaped = reference[i] == '~' && i + 1 < end;
      key += !escaped ? reference[i] : reference[++i] == '1' ? '/' : '~';
    }
    at = member(*at, key.c_str());
    reference.remove_prefix(end);
  }
  return at;
}

void add_name(ParameterType& type, std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto is_one_of = [&](std::initializer_list<const char*> prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* p) { return name.starts_with(p); });
  };
  if (is_one_of({"int", "uint", "long", "short"})) type.integer = true;
  else if (is_one_of({"num", "float", "double", "decimal"})) type.number = true;
  else if (is_one_of({"bool"})) type.boolean = true;
  else if (is_one_of({"object", "dict", "map"})) type.object = true;
  else if (is_one_of({"array", "list", "tuple"})) type.array = true;
  else if (name == "null" || name == "none") type.null = true;
  else type.string = true;
}

void add_value(ParameterType& type, const OrderedJson& value) {
  if (value.is_string()) type.string = true;
  else if (value.is_number_integer()) type.integer = true;
  else if (value.is_number()) type.number = true;
  else if (value.is_boolean()) type.boolean = true;
  else if (value.is_null()) type.null = true;
  else if (value.is_object()) type.object = true;
  else type.array = true;
}

void unite(ParameterType& type, const ParameterType& other) {
  type.string |= other.string || !other.any();
  type.integer |= other.integer, type.number |= other.number, type.boolean |= other.boolean;
  type.null |= other.null, type.object |= other.object, type.array |= other.array;
  type.choices.insert(type.choices.end(), other.choices.begin(), other.choices.end());
}

void intersect(ParameterType& type, const ParameterType& other) {
  if (!other.any()) return;
  if (!type.any()) {
    type = other;
    return;
  }
  type.integer = (type.integer || type.number) && (other.integer || other.number);
  type.number &= other.number, type.string &= other.string, type.boolean &= other.boolean;
  type.null &= other.null, type.object &= other.object, type.array &= other.array;
}

void add_enum(ParameterType& type, const OrderedJson& values, bool typed) {
  ParameterType named;
  for (const OrderedJson& value : values) add_value(named, value);
  if (!typed) type = named;
  if (named.string && (named.integer || named.number || named.boolean)) {
    type.choices.assign(values.begin(), values.end());
  }
}

// No type at all: the schema says nothing about it.
ParameterType resolve(const OrderedJson& schema, const OrderedJson& root, int& left) {
  ParameterType type;
  if (--left < 0) return type;
  if (const OrderedJson* reference = member(schema, "$ref"); reference && reference->is_string()) {
    const OrderedJson* target = follow(root, reference->get_ref<const std::string&>());
    return target ? resolve(*target, root, left) : type;
  }
  if (const OrderedJson* name = member(schema, "type"); name && name->is_string()) {
    add_name(type, *name);
  } else if (name && name->is_array()) {
    for (const OrderedJson& each : *name) {
      if (each.is_string()) add_name(type, each);
    }
  }
  const bool typed = type.any();
  if (const OrderedJson* values = member(schema, "enum"); values && values->is_array()) add_enum(type, *values, typed);
  if (const OrderedJson* value = member(schema, "const"); value && !type.any()) add_value(type, *value);
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    const OrderedJson* alternatives = member(schema, key);
    if (!alternatives || !alternatives->is_array() || type.any()) continue;
    for (const OrderedJson& each : *alternatives) {
      const ParameterType other = resolve(each, root, left);
      if (key[1] == 'l') intersect(type, other);
      else unite(type, other);
    }
  }
  if (!type.any()) {
    type.object = member(schema, "properties") || member(schema, "additionalProperties");
    type.array = member(schema, "items") || member(schema, "prefixItems");
  }
  if (const OrderedJson* nullable = member(schema, "nullable"); nullable && *nullable == true && type.any()) {
    type.null = true;
  }
  return type;
}

std::string_view strip(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  const size_t first = text.find_first_not_of(spaces);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<double> number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Any number of digits; 5.0 is the integer 5.
std::optional<std::string> integer_json(std::string_view text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  if (is_digits(digits)) {
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
    return (negative ? "-" : "") + std::string(digits);
  }
  const std::optional<double> value = number_of(text);
  if (!value || *value != std::floor(*value) || std::fabs(*value) > 9e15) return std::nullopt;
  return std::to_string(static_cast<int64_t>(*value));
}

std::optional<std::string> number_json(std::string_view text) {
  const std::optional<double> value = number_of(text);
  if (!value) return std::nullopt;
  const bool as_it_stands = OrderedJson::accept(text);
  return as_it_stands ? std::string(text) : python_json(*value);
}

std::optional<std::string> boolean_json(std::string_view text) {
  std::string lower(text.substr(0, 6));
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "true" || lower == "false") return lower;
  return std::nullopt;
}

std::optional<std::string> structured_json(std::string_view text, const ParameterType& type) {
  const auto fits = [&](std::string_view json) {
    return (json[0] == '{' && type.object) || (json[0] == '[' && type.array);
  };
  if (text.empty() || std::string_view("{[(").find(text[0]) == std::string_view::npos) return std::nullopt;
  if (OrderedJson::accept(text)) return fits(text) ? std::optional<std::string>(text) : std::nullopt;
  const std::optional<std::string> json = json_of_python(text);
  return json && fits(*json) ? json : std::nullopt;
}

// 1 or "1", where the enum holds only one of them.
std::optional<std::string> choice_json(std::string_view text, const std::vector<OrderedJson>& choices) {
  const auto among = [&](const OrderedJson& value) {
    return std::find(choices.begin(), choices.end(), value) != choices.end();
  };
  if (choices.empty() || among(std::string(text))) return std::nullopt;
  const std::string_view bare = strip(text);
  for (std::optional<std::string> json : {boolean_json(bare), number_json(bare)}) {
    if (json && among(OrderedJson::parse(*json))) return json;
  }
  return std::nullopt;
}

}  // namespace

std::string argument_json(std::string_view text, const ParameterType& type) {
  if (type.null && text == "null") return "null";
  if (type.string || !type.any()) return choice_json(text, type.choices).value_or(json_quoted(text));
  const std::string_view bare = strip(text);
  if (type.null && (bare == "null" || bare == "None")) return "null";
  std::optional<std::string> json;
  if (type.boolean) json = boolean_json(bare);
  if (!json && type.integer) json = integer_json(bare);
  if (!json && type.number) json = number_json(bare);
  if (!json && (type.object || type.array)) json = structured_json(bare, type);
  return json.value_or(json_quoted(text));
}

ToolSchemas::ToolSchemas(std::span<const OrderedJson> tools) {
  for (const OrderedJson& tool : tools) {
    const OrderedJson* function = member(tool, "function");
    if (!function) function = &tool;
    const OrderedJson* name = member(*function, "name");
    if (!name || !name->is_string()) continue;
    const OrderedJson* parameters = member(*function, "parameters");
    parameters_[*name] = parameters ? *parameters : OrderedJson();
  }
}

bool ToolSchemas::declares(std::string_view function) const { return parameters_.contains(std::string(function)); }

const OrderedJson* ToolSchemas::properties_of(std::string_view function) const {
  const auto found = parameters_.find(std::string(function));
  return found == parameters_.end() ? nullptr : member(found->second, "properties");
}

bool ToolSchemas::may_have(std::string_view function, std::string_view parameter) const {
  const OrderedJson* properties = properties_of(function);
  return !properties || properties->empty() || properties->contains(std::string(parameter));
}

ParameterType ToolSchemas::type_of(std::string_view function, std::string_view parameter) const {
  const OrderedJson* properties = properties_of(function);
  const OrderedJson* schema = properties ? member(*properties, std::string(parameter).c_str()) : nullptr;
  ParameterType type;
  int left = max_schemas;
  if (schema) type = resolve(*schema, parameters_.at(std::string(function)), left);
  type.string |= !type.any();
  return type;
}

}  // namespace lily
