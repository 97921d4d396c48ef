// Whether the model thinks first, and for how long: every way in which a client of OpenAI's APIs can say so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/field_reader.h"

namespace lily::server {

struct Thinking {
  bool enabled = true;
  std::optional<bool> preserve;   // see ChatRequest::preserve_thinking
  std::optional<int64_t> budget;  // tokens

  // "none" and "minimal" turn it off, "low" gives it a budget; "medium", "high", "xhigh" and "max" let it run. False: no such effort.
  bool set_effort(const std::string& effort);
};

// reasoning_effort, reasoning, thinking, enable_thinking, preserve_thinking, thinking_budget, and the same inside
// chat_template_kwargs. Where they disagree, off wins.
Thinking read_thinking(FieldReader& fields);

}  // namespace lily::server
