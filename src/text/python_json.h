// JSON as Python's json.dumps(value, ensure_ascii=False) writes it: the form of tools and arguments in prompts.
#pragma once

#include <string>

#include "text/chat.h"

namespace lily {

// Keys keep their order; ", " and ": " separate. Floats as Python shows them (1.0, 1e+22). Integers beyond 64 bits are floats:
// the parser has made them so.
std::string python_json(const OrderedJson& value);

// str(value) of a scalar: True, None, 1.0, a string as it is.
std::string python_str(const OrderedJson& scalar);

}  // namespace lily
