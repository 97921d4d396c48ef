// POST /v1/completions: the reply.
#pragma once

#include <memory>

#include "server/api.h"
#include "server/openai_reply.h"

namespace lily::server {

// The service outlives it. All that the model wrote is text here, its reasoning too.
std::unique_ptr<ReplyFormat> make_completion_format(const ChatService& service, const FormatOptions& options);

}  // namespace lily::server
