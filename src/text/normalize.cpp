#include "text/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace lily {
namespace {

struct Mark {
  utf8proc_int32_t character;
  int combining_class;
};

// utf8proc puts combining marks in order by exchanging neighbours: a long run of them, as nobody but an attacker
// writes, would take quadratic time. Sorted runs take one pass, so long ones are sorted first; order within a class
// is kept, as the standard asks.
std::string with_sorted_marks(std::string_view text) {
  std::string out;
  std::vector<Mark> run;
  const auto put = [&](utf8proc_int32_t character) {
    utf8proc_uint8_t bytes[4];
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(utf8proc_encode_char(character, bytes)));
  };
  const auto flush = [&] {
    std::stable_sort(run.begin(), run.end(),
                     [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    for (const Mark& mark : run) put(mark.character);
    run.clear();
  };
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t character = 0;
    const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &character);
    if (size <= 0) return std::string(text);  // not valid UTF-8: the caller never gives it
    const int combining_class = utf8proc_get_property(character)->combining_class;
    if (combining_class != 0) {
      run.push_back({character, combining_class});
    } else {
      flush();
      put(character);
    }
    at += static_cast<size_t>(size);
  }
  flush();
  return out;
}

void append_nfc(std::string_view unsorted, std::string& out) {
  // Below U+0300, whose first byte is 0xCC, every character is in form C already.
  if (std::all_of(unsorted.begin(), unsorted.end(), [](char c) { return static_cast<uint8_t>(c) < 0xCC; })) {
    out += unsorted;
    return;
  }
  const std::string text = with_sorted_marks(unsorted);
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
