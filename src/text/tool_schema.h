// The functions that a request declares, and what their JSON schemas say of the text of an argument.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/chat.h"

namespace lily {

// The types that a schema allows. A schema that names no type, or one that JSON does not have, allows strings.
struct ParameterType {
  bool string = false, integer = false, number = false, boolean = false, null = false, object = false, array = false;
  std::vector<OrderedJson> choices;  // of an enum that holds strings and other things

  bool any() const { return string || integer || number || boolean || null || object || array; }
};

// The text between a parameter's tags as JSON of a type that is allowed. Where strings are, it is a string, but for a bare
// null where that is allowed too; text that fits no allowed type is a string as well: nothing is lost.
std::string argument_json(std::string_view text, const ParameterType& type);

class ToolSchemas {
 public:
  explicit ToolSchemas(std::span<const OrderedJson> tools);  // see ChatOptions

  bool empty() const { return parameters_.empty(); }
  bool declares(std::string_view function) const;
  // Whether the function may have this parameter; true where nothing is known of its parameters.
  bool may_have(std::string_view function, std::string_view parameter) const;
  ParameterType type_of(std::string_view function, std::string_view parameter) const;

 private:
  const OrderedJson* properties_of(std::string_view function) const;

  std::unordered_map<std::string, OrderedJson> parameters_;  // by function: its schema, maybe null
};

}  // namespace lily
