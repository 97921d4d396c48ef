#include "base/result.h"

namespace lily {

std::string Error::message() const {
  std::string line = where;
  if (!line.empty() && !what.empty()) line += ": ";
  line += what;
  if (!expected.empty()) line += ": expected " + expected;
  if (!got.empty()) line += (expected.empty() ? ": got " : ", got ") + got;
  return line;
}

}  // namespace lily
