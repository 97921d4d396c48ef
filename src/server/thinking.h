// Whether the model thinks first, and for how long: every way in which a client can say so, in every API.
#pragma once

#include "server/field_reader.h"

namespace lily::server {

// off: as in Anthropic's API there is no thinking unless the request asks for it, and a `thinking` object has a type.
enum class ThinkingDefault { on, off };

// reasoning_effort, reasoning, thinking, enable_thinking, preserve_thinking, thinking_budget, and the same inside
// chat_template_kwargs. Where they disagree, off wins, and a budget over the guess that the effort "low" is. False: the
// client wants no text of the thinking ("display": "omitted", of Anthropic's API).
bool read_thinking(FieldReader& body, ThinkingDefault otherwise, ChatRequest& chat);

}  // namespace lily::server
