#include "base/result.h"

namespace lily {

std::string Error::message() const {
  std::string line = where;
  if (!line.empty() && !what.empty()) line += ": ";
  line += what;
  if (!expected.empty()) line += ": expected " + expected;
  if (!got.empty()) line += (expected.empty() ? ": got " : ", got ") + got;
  // Names from a hostile file must neither start a new line nor steer the terminal.
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return line;
}

}  // namespace lily
