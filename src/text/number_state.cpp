#include "text/number_state.h"

#include <algorithm>

namespace lily {
namespace {

using Phase = NumberState::Phase;

int64_t power_of_ten(int exponent) {
  int64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

struct Span {
  int64_t low, high;
  bool meets(const Span& other) const { return low <= other.high && other.low <= high; }
};

// The range without the sign. -0 is not written.
Span magnitudes(const NumberNode& node, bool negative) {
  if (negative) return {std::max<int64_t>(-node.high, 1), -node.low};
  return {std::max<int64_t>(node.low, 0), node.high};
}

// Units of one step of the last digit.
int64_t step_of(const NumberNode& node, const NumberState& s) {
  return power_of_ten(s.phase == Phase::fraction ? node.decimals - s.count : node.decimals);
}

// Some number of the range begins with what is written.
bool leads_into_range(const NumberNode& node, const NumberState& s) {
  const Span range = magnitudes(node, s.negative);
  if (s.phase == Phase::start || s.phase == Phase::minus) return range.low <= range.high;
  const int64_t step = step_of(node, s);
  const int more = s.phase == Phase::digits ? max_digits - node.decimals - s.count : 0;
  for (int k = 0; k <= more; ++k) {
    const int64_t scale = step * power_of_ten(k);
    if (Span{s.value * scale, (s.value + 1) * scale - 1}.meets(range)) return true;
  }
  return false;
}

bool take_digit(const NumberNode& node, NumberState& s, int digit) {
  if (s.phase == Phase::start || s.phase == Phase::minus) {
    s.phase = digit == 0 ? Phase::zero : Phase::digits;
    s.count = 0;
  } else if (s.phase == Phase::point) {
    s.phase = Phase::fraction;
    s.count = 0;
  } else if (s.phase == Phase::exponent || s.phase == Phase::exponent_sign) {
    s.phase = Phase::exponent_digits;
    s.count = 0;
  }
  int limit = 0;  // of `zero`, which no digit follows
  if (s.phase == Phase::digits) limit = node.ranged ? max_digits - node.decimals : max_digits;
  if (s.phase == Phase::fraction) limit = node.ranged ? node.decimals : max_digits;
  if (s.phase == Phase::exponent_digits) limit = 2;
  if (s.phase == Phase::zero) limit = 1;
  if (s.count == limit) return false;
  ++s.count;
  if (node.ranged) s.value = s.value * 10 + digit;
  return true;
}

bool take_mark(const NumberNode& node, NumberState& s, uint8_t byte) {
  const bool digits = s.phase == Phase::zero || s.phase == Phase::digits;
  if (byte == '-' && s.phase == Phase::start) {
    s.phase = Phase::minus;
    s.negative = true;
  } else if (byte == '.' && digits && (!node.ranged || node.decimals > 0)) {
    s.phase = Phase::point;
  } else if ((byte | 0x20) == 'e' && (digits || s.phase == Phase::fraction) && !node.ranged) {
    s.phase = Phase::exponent;
  } else if ((byte == '-' || byte == '+') && s.phase == Phase::exponent) {
    s.phase = Phase::exponent_sign;
  } else {
    return false;
  }
  return true;
}

}  // namespace

NumberNode any_integer() { return {true, 0, -max_units, max_units}; }

bool number_next(const NumberNode& node, NumberState& state, uint8_t byte) {
  const bool digit = byte >= '0' && byte <= '9';
  if (digit ? !take_digit(node, state, byte - '0') : !take_mark(node, state, byte)) return false;
  return !node.ranged || leads_into_range(node, state);
}

bool number_whole(const NumberNode& node, const NumberState& state) {
  switch (state.phase) {
    case Phase::exponent_digits: return true;
    case Phase::zero:
    case Phase::digits:
    case Phase::fraction: break;
    default: return false;
  }
  if (!node.ranged) return true;
  const int64_t units = state.value * step_of(node, state);
  return Span{units, units}.meets(magnitudes(node, state.negative));
}

}  // namespace lily
