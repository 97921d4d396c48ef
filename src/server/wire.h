// Text to and from the wire: JSON and server-sent events.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "server/api.h"

namespace lily::server {

// Deeper JSON is refused: whoever walks it may recurse.
constexpr size_t json_depth_limit = 100;

// Looks at the shape alone: what is wrong with it, or empty. Objects with very many keys are refused too, since each key is
// compared with all before it.
std::string check_shape(std::string_view json);

// A whole JSON value of valid UTF-8, or what is wrong with it.
std::variant<OrderedJson, std::string> parse_json(std::string_view text);

// On one line; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const OrderedJson& json);

std::string sse_text(const SseEvent& event);

}  // namespace lily::server
