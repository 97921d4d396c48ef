// Python literals where JSON was meant: {'k': True, 'n': None, 't': (1, 2)}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lily {

// The same value as compact JSON. Dictionaries, lists, tuples, strings, numbers, True, False and None, and JSON's own words;
// nothing: it is something else, or nested deeper than 100.
std::optional<std::string> json_of_python(std::string_view literal);

}  // namespace lily
