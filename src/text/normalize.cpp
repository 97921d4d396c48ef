#include "text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace lily {
namespace {

void append_nfc(std::string_view text, std::string& out) {
  // Below U+0300, whose first byte is 0xCC, every character is in form C already.
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0xCC; })) {
    out += text;
    return;
  }
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  utf8proc_uint8_t* mapped = nullptr;
  const auto size = utf8proc_map(bytes, static_cast<utf8proc_ssize_t>(text.size()), &mapped, options);
  if (size < 0) {  // no memory for it
    out += text;
  } else {
    out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(size));
  }
  std::free(mapped);
}

}  // namespace

std::string to_nfc(std::string_view text) {
  // utf8proc 2.8 loses U+11A7 behind a Hangul syllable. It composes with nothing, so text may be cut before it.
  constexpr std::string_view jungseong_o_yae = "\xE1\x86\xA7";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(jungseong_o_yae, 1));
    append_nfc(part, out);
    text.remove_prefix(part.size());
  }
  return out;
}

}  // namespace lily
