#include "text/chat_parts.h"

#include <algorithm>

#include "text/utf8.h"

namespace lily {
namespace {

// White space as the template language's `trim` sees it.
bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

// Bytes of the white-space character that `text` begins with; 0: it begins with none.
size_t space_at(std::string_view text) {
  if (text.empty()) return 0;
  const Utf8Step step = utf8_step(text);
  return step.kind == Utf8Step::Kind::character && is_space(code_point(text.substr(0, step.size))) ? step.size : 0;
}

}  // namespace

std::string_view trim(std::string_view text) {
  while (const size_t size = space_at(text)) text.remove_prefix(size);
  for (size_t size = 1; size <= std::min<size_t>(3, text.size());) {  // white space has at most 3 bytes
    if (space_at(text.substr(text.size() - size)) == size) {
      text.remove_suffix(size);
      size = 1;
    } else {
      ++size;
    }
  }
  return text;
}

bool is_query(const Message& message) {
  if (message.role != Role::user) return false;
  const std::string_view content = trim(message.content);
  return !(content.starts_with("<tool_response>") && content.ends_with("</tool_response>"));
}

}  // namespace lily
