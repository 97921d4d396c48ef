// The keywords of JSON Schema, and small checks of their values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/chat.h"
#include "text/grammar.h"

namespace lily {

inline constexpr size_t max_schema_levels = 128, max_schema_values = 50'000;

enum class KeywordKind { unknown, annotation, definitions, assertion };
KeywordKind kind_of_keyword(std::string_view name);

std::string join_path(const std::string& path, std::string_view name);

// The values of a document, itself included; max_schema_values + 1 for more than that, or more than max_schema_levels.
size_t count_values(const OrderedJson& document);

// Types that `schema` names or implies; empty: any.
Result<std::vector<std::string>> types_of(const OrderedJson& schema, const std::string& path);
bool has_type(const OrderedJson& value, std::string_view type);

// schema[name] as a count; `otherwise` where it is missing.
Result<uint32_t> count_keyword(const OrderedJson& schema, const char* name, uint32_t otherwise,
                               const std::string& path);

// minLength and maxLength; minimum and its kin with multipleOf.
Result<StringNode> string_node(const OrderedJson& schema, const std::string& path);
Result<NumberNode> number_node(const OrderedJson& schema, bool integer, const std::string& path);

}  // namespace lily
