// POST /v1/messages: Anthropic's Messages API.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "server/api.h"

namespace lily::server {

// Takes what has an effect (model, max_tokens, system, messages, tools, tool_choice, thinking, stop_sequences, sampling,
// output_config.format, stream, chat_template_kwargs), lets pass what has none here (cache_control, metadata, service_tier,
// context_management, output_config.effort, betas, ...) and refuses all else by name. As in Anthropic's API there is no
// thinking unless the request asks for it. Tools that run on the server are left out with a warning.
std::variant<ApiRequest, ApiError> parse_messages_request(const OrderedJson& body, const ChatService& service);

struct MessagesFormatOptions {
  bool show_thinking = true;        // false: thinking blocks come without their text
  std::optional<std::string> stop;  // the stop sequence, where there is just one
};
std::unique_ptr<ReplyFormat> make_messages_format(const std::string& model, const MessagesFormatOptions& options);

OrderedJson messages_error(const ApiError& error);  // {"type": "error", "error": {...}}

}  // namespace lily::server
