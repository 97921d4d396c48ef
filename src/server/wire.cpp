#include "server/wire.h"

#include <algorithm>

namespace lily::server {
namespace {

// The deepest nesting of brackets outside of strings.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

std::variant<OrderedJson, std::string> parse_json(std::string_view text) {
  if (depth_of(text) > json_depth_limit) {
    return "JSON is nested deeper than " + std::to_string(json_depth_limit) + " levels";
  }
  try {
    return OrderedJson::parse(text);
  } catch (const OrderedJson::exception& fault) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."; what it last read may be anything.
    std::string reason = fault.what();
    const size_t start = reason.find("] ");
    if (start != reason.npos) reason.erase(0, start + 2);
    return "not valid JSON: " + reason.substr(0, reason.find("; last read"));
  }
}

std::string json_text(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string sse_text(const SseEvent& event) {
  if (event.name == ":") return ": " + event.data + "\n\n";
  std::string text;
  if (!event.name.empty()) text = "event: " + event.name + "\n";
  return text + "data: " + event.data + "\n\n";
}

}  // namespace lily::server
