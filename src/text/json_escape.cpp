#include "text/json_escape.h"

#include <cstdint>

namespace lily {
namespace {

char short_escape(char c) {
  switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    case '\b': return 'b';
    case '\f': return 'f';
    default: return 0;
  }
}

}  // namespace

void append_json_escaped(std::string& json, std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  for (const char c : text) {
    if (const char letter = short_escape(c)) {
      json += '\\';
      json += letter;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      json += "\\u00";
      json += hex[c >> 4];
      json += hex[c & 15];
    } else {
      json += c;
    }
  }
}

std::string json_quoted(std::string_view text) {
  std::string json = "\"";
  append_json_escaped(json, text);
  return json += '"';
}

}  // namespace lily
