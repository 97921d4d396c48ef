#include "text/string_state.h"

namespace lily {
namespace {

using enum StringState;

bool is_hex(uint8_t c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

StringState after_lead(uint8_t byte) {
  if (byte < 0x80) return plain;
  if (byte < 0xC2 || byte > 0xF4) return bad;
  if (byte < 0xE0) return tail1;
  if (byte < 0xF0) return byte == 0xE0 ? tail_e0 : byte == 0xED ? tail_ed : tail2;
  return byte == 0xF0 ? tail_f0 : byte == 0xF4 ? tail_f4 : tail3;
}

StringState after_backslash(uint8_t byte) {
  switch (byte) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't': return plain;
    case 'u': return hex4;
    default: return bad;
  }
}

// The digit after \uD: 8 to B begin a pair, C to F are second halves, which cannot come first.
StringState after_d(uint8_t byte) {
  if (!is_hex(byte)) return bad;
  const int value = byte <= '9' ? byte - '0' : (byte | 0x20) - 'a' + 10;
  return value < 8 ? hex2 : value < 12 ? high2 : bad;
}

}  // namespace

StringState utf8_next(StringState state, uint8_t byte) {
  const auto within = [&](uint8_t low, uint8_t high, StringState next) {
    return byte >= low && byte <= high ? next : bad;
  };
  switch (state) {
    case plain: return after_lead(byte);
    case tail1: return within(0x80, 0xBF, plain);
    case tail2: return within(0x80, 0xBF, tail1);
    case tail3: return within(0x80, 0xBF, tail2);
    case tail_e0: return within(0xA0, 0xBF, tail1);
    case tail_ed: return within(0x80, 0x9F, tail1);
    case tail_f0: return within(0x90, 0xBF, tail2);
    case tail_f4: return within(0x80, 0x8F, tail2);
    default: return bad;
  }
}

StringState string_next(StringState state, uint8_t byte) {
  const auto hex = [&](StringState next) { return is_hex(byte) ? next : bad; };
  switch (state) {
    case plain:
      if (byte < 0x20 || byte == '"') return bad;
      return byte == '\\' ? escape : after_lead(byte);
    case escape: return after_backslash(byte);
    case hex4: return (byte | 0x20) == 'd' ? hex_d : hex(hex3);
    case hex_d: return after_d(byte);
    case hex3: return hex(hex2);
    case hex2: return hex(hex1);
    case hex1: return hex(plain);
    case high2: return hex(high1);
    case high1: return hex(low_escape);
    case low_escape: return byte == '\\' ? low_u : bad;
    case low_u: return byte == 'u' ? low_hex4 : bad;
    case low_hex4: return (byte | 0x20) == 'd' ? low_hex3 : bad;
    case low_hex3: return (byte | 0x20) >= 'c' ? hex(hex2) : bad;
    default: return utf8_next(state, byte);
  }
}

}  // namespace lily
