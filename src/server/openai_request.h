// What the bodies of both completion APIs of OpenAI have in common.
#pragma once

#include "server/api.h"
#include "server/field_reader.h"

namespace lily::server {

struct CommonFields {
  int n = 1;
  bool stream = false;
  bool include_usage = false;  // a last event of the stream with the numbers of tokens
};

// Reads all that is not the prompt, logprobs or thinking, which settles the defaults of the sampling.
CommonFields read_common(FieldReader& fields, const ChatService& service, bool thinking, ReplyOptions& reply);

// {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}
OrderedJson openai_error(const ApiError& error);

}  // namespace lily::server
