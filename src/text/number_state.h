// A JSON number, byte by byte, never longer than some forty bytes.
#pragma once

#include <cstdint>

#include "text/grammar.h"

namespace lily {

inline constexpr int max_digits = 18;  // before the point, and after it; both together in a range
inline constexpr int64_t max_units = 999'999'999'999'999'999;

struct NumberState {
  enum class Phase : uint8_t { start, minus, zero, digits, point, fraction, exponent, exponent_sign, exponent_digits };
  Phase phase = Phase::start;
  bool negative = false;
  uint8_t count = 0;  // digits of the current phase
  int64_t value = 0;  // of all digits, in a range
  bool operator==(const NumberState&) const = default;
};

NumberNode any_integer();

// False: the byte does not go on with the number, or leads to none within the range; then the state is lost.
bool number_next(const NumberNode& node, NumberState& state, uint8_t byte);

// The number may end here.
bool number_whole(const NumberNode& node, const NumberState& state);

}  // namespace lily
