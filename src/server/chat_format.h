// POST /v1/chat/completions: the reply.
#pragma once

#include <memory>

#include "server/api.h"
#include "server/openai_reply.h"

namespace lily::server {

// The service outlives it. Reasoning goes out under both names that clients look for. Logprobs cover every sampled token,
// those of the reasoning and of calls too; a token whose text is held back has its entry in the next event.
std::unique_ptr<ReplyFormat> make_chat_format(const ChatService& service, const FormatOptions& options);

}  // namespace lily::server
