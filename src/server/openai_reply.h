// What the replies of both completion APIs of OpenAI have in common.
#pragma once

#include <string>

#include "server/api.h"

namespace lily::server {

struct FormatOptions {
  int choices = 1;
  bool include_usage = false;
  bool logprobs = false;
};

// The numbers of all choices of a request.
class ReplyTotals {
 public:
  void add(const Reply& reply);
  OrderedJson usage() const;
  OrderedJson timings() const;  // the names are those of llama.cpp's server

 private:
  Reply sum_;  // its numbers; the prompt's are those of the first reply, since the others share it
  int64_t completion_tokens_ = 0;
  bool first_ = true;
};

// {"token": ..., "logprob": ..., "bytes": [...]}
OrderedJson token_logprob(const Tokenizer& tokenizer, int32_t id, float logprob);

// -9999 for what JSON cannot say.
double finite_logprob(float logprob);

// "stop", "length" or, after a call, "tool_calls".
const char* finish_reason(const Reply& reply, bool called);

// id, object, created, model, system_fingerprint: the head of every document and event.
OrderedJson envelope(const std::string& id, const char* object, int64_t created, const ChatService& service);

int64_t unix_time();

}  // namespace lily::server
