// Text inside the quotes of a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace lily {

// Escapes quotes, backslashes and control characters; everything else stays as it is.
void append_json_escaped(std::string& json, std::string_view text);

std::string json_quoted(std::string_view text);

}  // namespace lily
