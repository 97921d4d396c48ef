// How sizes and other people's text are shown to the user.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lily::hub {

// "20.40 GB", "151.3 MB", "12 kB", "7 bytes"
std::string readable_bytes(int64_t bytes);

// Text from a server made fit for a terminal: no control characters, at most 200 bytes.
std::string printable(std::string_view text);

}  // namespace lily::hub
