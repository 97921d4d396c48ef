// POST /v1/responses: OpenAI's Responses API. Nothing is stored, so that every request brings its whole conversation.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "server/api.h"

namespace lily::server {

// Takes what has an effect (model, input, instructions, tools, tool_choice, parallel_tool_calls, max_output_tokens, reasoning,
// text, stream, sampling, chat_template_kwargs), lets pass what has none here (store, metadata, prompt_cache_key, user,
// service_tier, client_metadata, ...) and refuses all else by name. Tools that are no functions are left out with a warning.
std::variant<ApiRequest, ApiError> parse_responses_request(const OrderedJson& body, const ChatService& service);

// `settings`: the fields of the response object that only repeat the request.
std::unique_ptr<ReplyFormat> make_responses_format(const std::string& model, const OrderedJson& settings);

}  // namespace lily::server
