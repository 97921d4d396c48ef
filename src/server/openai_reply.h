// What the replies of both completion APIs of OpenAI have in common.
#pragma once

#include <string>
#include <vector>

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

// What tells the one API's documents and events from the other's.
struct FormatNames {
  const char *id_prefix, *document, *event;  // the latter two: of the field `object`
};

// Choices with an index and a finish reason, usage at the end, [DONE]. The service outlives it.
class OpenAiFormat : public ReplyFormat {
 public:
  OpenAiFormat(const ChatService& service, const FormatOptions& options, const FormatNames& names);
  void finish(int index, const Reply& reply, std::vector<SseEvent>& out) override;
  void end(std::vector<SseEvent>& out) override;
  void fail(const ApiError& error, std::vector<SseEvent>& out) override;
  SseEvent keep_alive() override { return {":", "still working"}; }
  OrderedJson document() override;

 protected:
  // The fields of a choice's entry in the document and of its last event, beside index and finish reason.
  virtual OrderedJson whole(int index) = 0;
  virtual OrderedJson last(int index) = 0;
  virtual bool called(int index) const = 0;

  OrderedJson event_of(int index, const OrderedJson& fields) const;

  const ChatService& service_;
  const FormatOptions options_;

 private:
  OrderedJson entry_of(int index, const OrderedJson& fields) const;
  OrderedJson envelope(const char* object, OrderedJson choices) const;

  FormatNames names_;
  std::string id_;
  int64_t created_;
  std::vector<std::string> reasons_;  // of the choices; empty: not finished
  int finished_ = 0;
  ReplyTotals totals_;
};

// {"token": ..., "logprob": ..., "bytes": [...]}
OrderedJson token_logprob(const Tokenizer& tokenizer, int32_t id, float logprob);

// -9999 for what JSON cannot say.
double finite_logprob(float logprob);

int64_t unix_time();

}  // namespace lily::server
