#include "text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace lily {

std::string to_nfc(std::string_view text) {
  // Below U+0300, whose first byte is 0xCC, every character is in form C already.
  const bool simple = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0xCC; });
  if (simple) return std::string(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (size < 0) return std::string(text);  // no memory for it
  std::string out(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  std::free(mapped);
  return out;
}

}  // namespace lily
