#include "text/call_json.h"

#include <nlohmann/json.hpp>

#include "text/json_scanner.h"
#include "text/python_literal.h"

namespace lily {
namespace {

constexpr size_t max_call_depth = 64;

// Valid JSON as it stands, else as Python.
std::optional<std::string> valid_object(std::string text) {
  if (nlohmann::json::accept(text)) return text;
  return json_of_python(text);
}

bool is_object_text(std::string_view json) { return json.starts_with('{') && nlohmann::json::accept(json); }

}  // namespace

ObjectExtent object_at(std::string_view text, bool final) {
  constexpr std::string_view end_tag = "</tool_call>";
  std::string missing;  // what closes the brackets that are open, innermost last
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quote) {
      if (c == '\\') ++at;
      else if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[') {
      missing += c == '{' ? '}' : ']';
      if (missing.size() > max_call_depth) return {Decision::no, 0, {}};
    } else if (c == '}' || c == ']') {
      if (missing.empty() || missing.back() != c) return {Decision::no, 0, {}};
      missing.pop_back();
      if (!missing.empty()) continue;
      auto json = valid_object(std::string(text.substr(0, at + 1)));
      return json ? ObjectExtent{Decision::yes, at + 1, *json} : ObjectExtent{Decision::no, 0, {}};
    } else if (c == '<' && text.substr(at).starts_with(end_tag)) {
      auto json = valid_object(std::string(text.substr(0, at)) + std::string(missing.rbegin(), missing.rend()));
      return json ? ObjectExtent{Decision::yes, at, *json} : ObjectExtent{Decision::no, 0, {}};
    }
  }
  return {final ? Decision::no : Decision::more, 0, {}};
}

std::optional<JsonCall> json_call(std::string_view object) {
  JsonCall call;
  JsonScanner scanner(object);
  const bool read = scanner.object([&](std::string_view key) {
    std::string_view text;
    if (key == "name" && call.name.empty()) {
      if (!scanner.string(text)) return false;
      call.name = text;
      return true;
    }
    if ((key == "arguments" || key == "parameters") && call.arguments.empty()) {
      if (scanner.peek() == '"' ? !scanner.string(text) : !scanner.skip(text)) return false;
      call.arguments = text == "null" || text.empty() ? "{}" : std::string(text);
      return true;
    }
    return (key == "id" || key == "type") && scanner.skip(text);
  });
  if (!read || scanner.peek() != 0 || call.name.empty()) return std::nullopt;
  if (call.arguments.empty()) call.arguments = "{}";
  if (!is_object_text(call.arguments)) return std::nullopt;
  return call;
}

}  // namespace lily
