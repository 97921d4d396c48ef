// Unicode normalisation form C.
#pragma once

#include <string>
#include <string_view>

namespace lily {

// Well-formed UTF-8 in form C.
std::string to_nfc(std::string_view text);

}  // namespace lily
