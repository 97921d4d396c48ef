// Where the bytes of a text are: between characters, inside a UTF-8 character, inside an escape of a JSON string.
#pragma once

#include <cstdint>

namespace lily {

enum class StringState : uint8_t {
  plain,  // between characters
  tail1,
  tail2,
  tail3,  // so many continuation bytes are missing
  tail_e0,
  tail_ed,
  tail_f0,
  tail_f4,  // after these lead bytes, whose next byte has a smaller range
  escape,   // after a backslash
  hex4,
  hex_d,
  hex3,
  hex2,
  hex1,  // so many digits of \uXXXX are missing; hex_d: three, after a D
  high2,
  high1,  // the same, of a high surrogate
  low_escape,
  low_u,
  low_hex4,
  low_hex3,  // then its low surrogate must come, which ends in hex2
  bad
};

// One byte on, of UTF-8 text.
StringState utf8_next(StringState state, uint8_t byte);

// One byte on, of what stands between a JSON string's quotes. The closing quote is the caller's.
StringState string_next(StringState state, uint8_t byte);

}  // namespace lily
