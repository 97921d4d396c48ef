// What the chat template and the making of lists for it both need to know about a message.
#pragma once

#include <string_view>

#include "text/chat.h"

namespace lily {

// Without the white space at both ends, as the template language's `trim` sees it.
std::string_view trim(std::string_view text);

// A user message that only carries tool results continues the turn before it; any other one asks something.
bool is_query(const Message& message);

}  // namespace lily
