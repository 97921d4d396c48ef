#include "server/wire.h"

#include <cstdint>
#include <vector>

namespace lily::server {
namespace {

// Of the comparisons of keys with each other that one text may cost: 14'000 keys in one object, 0.2 seconds.
constexpr int64_t most_comparisons = 100'000'000;
// A value costs up to 100 bytes, so that a body of few bytes a value would take many times its own size.
constexpr int64_t most_values = 1'000'000;

}  // namespace

std::string check_shape(std::string_view json) {
  std::vector<int64_t> keys;  // so far, of every open object
  int64_t comparisons = 0, values = 1;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      keys.push_back(0);
      if (keys.size() > json_depth_limit) {
        return "JSON is nested deeper than " + std::to_string(json_depth_limit) + " levels";
      }
    } else if ((c == '}' || c == ']') && !keys.empty()) {
      keys.pop_back();
    } else if (c == ',' && ++values > most_values) {
      return "JSON has too many values";
    } else if (c == ':' && !keys.empty()) {
      comparisons += keys.back()++;
      if (comparisons > most_comparisons) return "JSON has objects with too many keys";
    }
  }
  return {};
}

std::variant<OrderedJson, std::string> parse_json(std::string_view text) {
  if (std::string fault = check_shape(text); !fault.empty()) return fault;
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
