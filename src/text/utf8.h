// UTF-8, one character at a time. Malformed input is cut into maximal subparts, as Unicode recommends for U+FFFD.
#pragma once

#include <cstddef>
#include <string_view>

namespace lily {

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

struct Utf8Step {
  enum class Kind { character, malformed, truncated };  // truncated: the text ends inside a character
  Kind kind;
  size_t size;  // bytes of the character, of the malformed subpart, or of all that is left
};

// What `text`, which is not empty, begins with.
Utf8Step utf8_step(std::string_view text);

// Bytes at the start of `text` that are whole, well-formed characters.
size_t valid_utf8_prefix(std::string_view text);

// The code point of one well-formed character.
char32_t code_point(std::string_view character);

}  // namespace lily
