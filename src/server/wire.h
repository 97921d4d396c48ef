// Text to and from the wire: JSON and server-sent events.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "server/api.h"

namespace lily::server {

// Deeper JSON is refused: whoever walks it may recurse.
constexpr int json_depth_limit = 100;

// A whole JSON value of valid UTF-8, or what is wrong with it.
std::variant<OrderedJson, std::string> parse_json(std::string_view text);

// On one line; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const OrderedJson& json);

std::string sse_text(const SseEvent& event);

}  // namespace lily::server
