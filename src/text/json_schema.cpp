#include "text/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "text/schema_keywords.h"

namespace lily {
namespace {

constexpr size_t max_merged_values = 2 * max_schema_values;
constexpr int max_references = 16;  // one after the other, where schemas are merged

bool is_assertion(const std::string& keyword) {
  return kind_of_keyword(keyword) == KeywordKind::assertion && keyword != "nullable";
}

// The first assertion of `schema` that is none of `known`.
std::optional<std::string> other_assertion(const OrderedJson& schema, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : schema.items()) {
    if (is_assertion(name) && std::find(known.begin(), known.end(), name) == known.end()) return name;
  }
  return std::nullopt;
}

Error beside(const std::string& path, const std::string& keyword, std::string_view other) {
  return {join_path(path, keyword), fmt::format("not supported beside {}", other), "", ""};
}

Error wrong_value(const std::string& path, std::string_view keyword, std::string expected, const OrderedJson& got) {
  return {join_path(path, keyword), "wrong value", std::move(expected), got.type_name()};
}

// JSON as a model is to write it: no white space, no needless escapes.
std::string text_of(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto hex = [&](size_t at) {
      return std::string_view("0123456789abcdef").find(static_cast<char>(at < text.size() ? text[at] | 0x20 : 'x'));
    };
    const bool coded = text[i] == '%' && hex(i + 1) < 16 && hex(i + 2) < 16;
    decoded += coded ? static_cast<char>(hex(i + 1) * 16 + hex(i + 2)) : text[i];
    i += coded ? 2 : 0;
  }
  return decoded;
}

// Whether a property of one schema would be forbidden by the other's additionalProperties.
bool closes(const OrderedJson& closed, const OrderedJson& other) {
  const auto additional = closed.find("additionalProperties");
  if (additional == closed.end() || *additional == true || !other.contains("properties")) return false;
  const auto own = closed.find("properties");
  for (const auto& [name, value] : other["properties"].items()) {
    if (own == closed.end() || !own->contains(name)) return true;
  }
  return false;
}

}  // namespace

Result<Grammar> json_grammar(const OrderedJson* schema) {
  Grammar grammar;
  const AnyJson any(grammar);
  NodeId value = any.object;
  if (schema) {
    SchemaCompiler compiler(grammar, any);
    LILY_TRY(value, compiler.compile(*schema));
  }
  grammar.root = grammar.add({DocumentNode{value}});
  if (!finish_grammar(grammar)) return Error{"", "too many alternatives of one value", "at most 256", ""};
  if (grammar.at(value).height > max_nesting) {
    return Error{"",
                 fmt::format("the schema allows nothing, or only what is nested deeper than {} levels", max_nesting),
                 "", ""};
  }
  return grammar;
}

Result<NodeId> SchemaCompiler::compile(const OrderedJson& schema) {
  if (count_values(schema) > max_schema_values) {
    return Error{"", "the schema is too large",
                 fmt::format("at most {} levels and {} values", max_schema_levels, max_schema_values), ""};
  }
  root_ = &schema;
  nodes_.clear();
  open_.clear();
  const NodeId node = node_of(schema, "");
  while (!open_.empty()) {
    const Open next = std::move(open_.back());
    open_.pop_back();
    LILY_CHECK(visit(next));
  }
  return node;
}

NodeId SchemaCompiler::node_of(const OrderedJson& schema, const std::string& path) {
  const auto [at, is_new] = nodes_.try_emplace(&schema, no_node);
  if (is_new) {
    at->second = grammar_.add({ChoiceNode{}});
    open_.push_back({&schema, path, at->second});
  }
  return at->second;
}

Result<void> SchemaCompiler::visit(const Open& open) {
  const OrderedJson& schema = *open.schema;
  std::vector<NodeId> nodes;
  if (schema.is_boolean()) {
    if (schema.get<bool>()) nodes.push_back(any_.any);
  } else {
    LILY_CHECK(check_keywords(schema, open.path));
    LILY_TRY(nodes, combined(schema, open.path));
    if (const auto at = schema.find("nullable"); at != schema.end()) {
      if (!at->is_boolean()) return wrong_value(open.path, "nullable", "true or false", *at);
      if (at->get<bool>()) nodes.push_back(any_.null);
    }
  }
  grammar_.nodes[static_cast<size_t>(open.node)].is = ChoiceNode{std::move(nodes)};
  return {};
}

Result<void> SchemaCompiler::check_keywords(const OrderedJson& schema, const std::string& path) const {
  if (!schema.is_object()) return Error{path, "no schema", "an object, true or false", schema.type_name()};
  for (const auto& [name, value] : schema.items()) {
    if (kind_of_keyword(name) == KeywordKind::unknown) {
      return Error{join_path(path, name), "this keyword of JSON Schema is not supported", "", ""};
    }
  }
  return {};
}

// What a schema is: a reference, a combination of others, fixed values, or values of some types.
Result<std::vector<NodeId>> SchemaCompiler::combined(const OrderedJson& schema, const std::string& path) {
  if (schema.contains("$ref")) {
    if (const auto other = other_assertion(schema, {"$ref"})) return beside(path, *other, "$ref");
    LILY_TRY(const OrderedJson* target, resolve(schema, path));
    return std::vector{node_of(*target, schema["$ref"].get<std::string>())};
  }
  if (schema.contains("allOf")) {
    LILY_TRY(const NodeId node, all_of(schema, path));
    return std::vector{node};
  }
  if (schema.contains("anyOf")) return any_of(schema, "anyOf", path);
  if (schema.contains("oneOf")) return any_of(schema, "oneOf", path);
  if (schema.contains("enum") || schema.contains("const")) {
    LILY_TRY(const NodeId node, words(schema, path));
    return std::vector{node};
  }
  return typed(schema, path);
}

Result<const OrderedJson*> SchemaCompiler::resolve(const OrderedJson& reference, const std::string& path) const {
  const OrderedJson& target = reference["$ref"];
  if (!target.is_string()) return wrong_value(path, "$ref", "a string", target);
  const auto& name = target.get_ref<const std::string&>();
  const Error missing{join_path(path, "$ref"), "leads nowhere", "\"#\", or \"#/\" and a path within the schema", name};
  if (!name.starts_with('#')) return missing;
  try {
    const OrderedJson::json_pointer pointer(percent_decoded(std::string_view(name).substr(1)));
    if (!root_->contains(pointer)) return missing;
    return &root_->at(pointer);
  } catch (const OrderedJson::exception&) {
    return missing;
  }
}

Result<const OrderedJson*> SchemaCompiler::follow(const OrderedJson* schema, const std::string& path) const {
  for (int i = 0; schema->is_object() && schema->contains("$ref"); ++i) {
    if (i == max_references) return Error{path, "too many references in a row", "", ""};
    if (const auto other = other_assertion(*schema, {"$ref"})) return beside(path, *other, "$ref");
    LILY_TRY(schema, resolve(*schema, path));
  }
  return schema;
}

// What satisfies both. `path` is b's.
Result<const OrderedJson*> SchemaCompiler::merge(const OrderedJson& a, const OrderedJson& b, const std::string& path) {
  LILY_TRY(const OrderedJson* other, follow(&b, path));
  LILY_CHECK(check_keywords(*other, path));
  merged_values_ += count_values(a) + count_values(*other);
  if (merged_values_ > max_merged_values) return Error{path, "the schema is too large once merged", "", ""};
  const auto not_simple = [&](const std::string& name) {
    return Error{join_path(path, name), "cannot be merged with the keywords beside it", "", ""};
  };
  OrderedJson both = a;
  for (const auto& [name, value] : other->items()) {
    if (!is_assertion(name)) continue;
    if (name == "anyOf" || name == "oneOf" || name == "allOf") return not_simple(name);
    const auto known = both.find(name);
    if (known == both.end()) {
      both[name] = value;
    } else if (name == "properties" && value.is_object() && known->is_object()) {
      for (const auto& [key, property] : value.items()) {
        if (known->contains(key) && (*known)[key] != property) return not_simple(join_path(name, key));
        (*known)[key] = property;
      }
    } else if (name == "required" && value.is_array() && known->is_array()) {
      known->insert(known->end(), value.begin(), value.end());
    } else if (*known != value) {
      return not_simple(name);
    }
  }
  if (closes(a, *other) || closes(*other, a)) return not_simple("additionalProperties");
  if (both.contains("items") && both.contains("prefixItems") && a.contains("items") != a.contains("prefixItems")) {
    return not_simple("items");
  }
  return &merged_.emplace_back(std::move(both));
}

Result<std::vector<NodeId>> SchemaCompiler::any_of(const OrderedJson& schema, const char* keyword,
                                                   const std::string& path) {
  const OrderedJson& list = schema[keyword];
  if (!list.is_array() || list.empty()) return wrong_value(path, keyword, "a list of schemas", list);
  if (list.size() > max_choices) {
    return Error{join_path(path, keyword), "too many alternatives", fmt::format("at most {}", max_choices),
                 fmt::format("{}", list.size())};
  }
  OrderedJson rest = schema;
  rest.erase(keyword);
  const bool alone = !other_assertion(rest, {});
  std::vector<NodeId> nodes;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string below = join_path(path, fmt::format("{}.{}", keyword, i));
    const OrderedJson* alternative = &list[i];
    if (!alone) {
      LILY_TRY(alternative, merge(rest, list[i], below));
    }
    nodes.push_back(node_of(*alternative, alone ? below : path));
  }
  return nodes;
}

Result<NodeId> SchemaCompiler::all_of(const OrderedJson& schema, const std::string& path) {
  const OrderedJson& list = schema["allOf"];
  if (!list.is_array() || list.empty()) return wrong_value(path, "allOf", "a list of schemas", list);
  OrderedJson rest = schema;
  rest.erase("allOf");
  rest.erase("nullable");  // of the result, not of a part
  if (list.size() == 1 && !other_assertion(rest, {})) return node_of(list[0], join_path(path, "allOf.0"));
  const OrderedJson* both = &merged_.emplace_back(std::move(rest));
  for (size_t i = 0; i < list.size(); ++i) {
    LILY_TRY(both, merge(*both, list[i], join_path(path, fmt::format("allOf.{}", i))));
  }
  return node_of(*both, path);
}

Result<NodeId> SchemaCompiler::words(const OrderedJson& schema, const std::string& path) {
  const char* keyword = schema.contains("enum") ? "enum" : "const";
  if (const auto other = other_assertion(schema, {keyword, "type"})) return beside(path, *other, keyword);
  if (schema.contains("enum") && !schema["enum"].is_array())
    return wrong_value(path, keyword, "a list", schema["enum"]);
  LILY_TRY(const std::vector<std::string> types, types_of(schema, path));
  std::vector<std::string> texts;
  for (const OrderedJson& value : schema.contains("enum") ? schema["enum"] : OrderedJson::array({schema["const"]})) {
    const auto fits = [&](const std::string& type) { return has_type(value, type); };
    if (!types.empty() && std::none_of(types.begin(), types.end(), fits)) continue;
    texts.push_back(text_of(value));
    if (texts.back().size() > WordList::max_bytes)
      return Error{join_path(path, keyword), "a value is too long", "", ""};
  }
  return grammar_.add({WordsNode{WordList(texts)}});
}

Result<std::vector<NodeId>> SchemaCompiler::typed(const OrderedJson& schema, const std::string& path) {
  LILY_TRY(const std::vector<std::string> types, types_of(schema, path));
  std::vector<NodeId> nodes;
  for (const std::string& type : types) {
    LILY_TRY(const NodeId node, of_type(type, schema, path));
    nodes.push_back(node);
  }
  if (types.empty()) nodes.push_back(any_.any);
  return nodes;
}

Result<NodeId> SchemaCompiler::of_type(const std::string& type, const OrderedJson& schema, const std::string& path) {
  if (type == "object") return object(schema, path);
  if (type == "array") return array(schema, path);
  if (type == "string") {
    LILY_TRY(const StringNode node, string_node(schema, path));
    return grammar_.add({node});
  }
  if (type == "number" || type == "integer") {
    LILY_TRY(const NumberNode node, number_node(schema, type == "integer", path));
    return grammar_.add({node});
  }
  return any_.of_type(type);
}

Result<NodeId> SchemaCompiler::object(const OrderedJson& schema, const std::string& path) {
  static const OrderedJson none = OrderedJson::object(), no_list = OrderedJson::array(), anything = true;
  const OrderedJson& properties = schema.contains("properties") ? schema["properties"] : none;
  const OrderedJson& required = schema.contains("required") ? schema["required"] : no_list;
  if (!properties.is_object()) return wrong_value(path, "properties", "an object", properties);
  if (!required.is_array()) return wrong_value(path, "required", "a list of names", required);
  const auto additional = schema.find("additionalProperties");
  const OrderedJson& others = additional != schema.end() ? *additional : anything;
  const std::string others_path = join_path(path, "additionalProperties");

  std::vector<std::string> names;
  ObjectNode node;
  for (const auto& [name, property] : properties.items()) {
    names.push_back(name);
    node.values.push_back(node_of(property, join_path(path, "properties." + name)));
  }
  std::unordered_map<std::string, bool> is_required;
  for (const OrderedJson& name : required) {
    if (!name.is_string()) return wrong_value(path, "required", "a list of names", name);
    const bool is_new = is_required.emplace(name, true).second;
    if (!is_new || properties.contains(name.get<std::string>())) continue;
    if (others == false) return Error{join_path(path, "required"), "no such property", "", name.get<std::string>()};
    names.push_back(name);
    node.values.push_back(others == true ? any_.any : node_of(others, others_path));
  }
  if (additional != schema.end() || !schema.contains("properties")) {
    if (others == true) node.additional = any_.any;
    if (!others.is_boolean()) node.additional = node_of(others, others_path);
  }
  node.next_required.assign(names.size() + 1, static_cast<uint16_t>(names.size()));
  for (size_t i = names.size(); i-- > 0;) {
    node.next_required[i] = is_required.contains(names[i]) ? static_cast<uint16_t>(i) : node.next_required[i + 1];
  }
  for (std::string& name : names) {
    if (name.size() > WordList::max_bytes / 6)
      return Error{join_path(path, "properties"), "a name is too long", "", ""};
    name = text_of(name).substr(1);
  }
  node.keys = WordList(names);
  return grammar_.add({std::move(node)});
}

Result<NodeId> SchemaCompiler::array(const OrderedJson& schema, const std::string& path) {
  ArrayNode node;
  LILY_TRY(node.min, count_keyword(schema, "minItems", 0, path));
  LILY_TRY(node.max, count_keyword(schema, "maxItems", unlimited, path));
  const auto prefix = schema.find("prefixItems");
  if (prefix != schema.end()) {
    if (!prefix->is_array()) return wrong_value(path, "prefixItems", "a list of schemas", *prefix);
    for (size_t i = 0; i < prefix->size(); ++i) {
      node.prefix.push_back(node_of((*prefix)[i], join_path(path, fmt::format("prefixItems.{}", i))));
    }
  }
  if (const auto items = schema.find("items"); items != schema.end()) {
    node.items = node_of(*items, join_path(path, "items"));
  } else if (prefix == schema.end()) {
    node.items = any_.any;
  }
  return grammar_.add({std::move(node)});
}

}  // namespace lily
