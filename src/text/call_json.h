// A tool call written as JSON: {"name": "f", "arguments": {...}}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/tool_markup.h"

namespace lily {

// Where the object ends that `text` begins with. Missing braces before </tool_call> are tolerated.
struct ObjectExtent {
  Decision found;   // no: it is not one
  size_t size = 0;  // in the text
  std::string json;
};
ObjectExtent object_at(std::string_view text, bool final);

struct JsonCall {
  std::string name;
  std::string arguments;  // an object
};

// Keys "name" and "arguments" or "parameters" (an object, or a text of one), perhaps "id" and "type"; nothing: another object.
std::optional<JsonCall> json_call(std::string_view object);

}  // namespace lily
