// One reply in the making: logits in, sampled tokens and what a user sees of them out. Knows no backend.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "runtime/sampler.h"
#include "text/chat.h"
#include "text/stream_splitter.h"
#include "text/token_constraint.h"
#include "text/tokenizer.h"

namespace lily {

enum class Finish { end_token, stop_string, length, context_full, cancelled };

const char* name_of(Finish finish);  // "end_token", ...

struct ReplyOptions {
  SamplingParams sampling;
  std::optional<int64_t> max_tokens;       // without: to the end of the context
  std::optional<int64_t> thinking_budget;  // tokens of reasoning after which it is closed
  std::vector<int32_t> end_tokens;         // end the reply and are no part of it
  SplitterOptions splitter;
  std::shared_ptr<const TokenConstraint> constraint;  // of the content; reasoning stays free, but must end
  bool single_call = false;                           // the reply ends with its first tool call
  std::optional<int> top_logprobs;  // how many alternatives to report with each token; without: no logprobs
};

struct TokenLogprob {
  int32_t id;
  float logprob;  // natural logarithm, of the distribution at temperature 1 before any cut
};

// What one sampled token brings.
struct ReplyStep {
  int32_t id = -1;                 // -1: no token, the end of the reply
  Channel channel;                 // that the token belongs to
  float logprob = 0;               // of the token, and
  std::vector<TokenLogprob> top;   // the likeliest, both where ReplyOptions::top_logprobs asks for them
  std::vector<ReplyEvent> events;  // maybe none
};

struct Reply {
  std::vector<int32_t> tokens;  // as sampled, without the end token
  Finish finish = Finish::length;
  Channel channel = Channel::content;  // where it ended
  Message message;                     // what a user saw
  int64_t reasoning_tokens = 0;
  int64_t prompt_tokens = 0;  // reused ones too
  int64_t reused_tokens = 0;
  int64_t known_tokens =
      0;  // how many of the prompt began some sequence in the cache: a snapshot lies at or before their end
  int64_t prefilled_tokens = 0;
  int64_t decoded_tokens = 0;  // decode steps: the first token comes from the prefill
  double prefill_seconds = 0;
  double decode_seconds = 0;

  double prefill_rate() const {
    return prefill_seconds > 0 ? static_cast<double>(prefilled_tokens) / prefill_seconds : 0;
  }
  double decode_rate() const { return decode_seconds > 0 ? static_cast<double>(decoded_tokens) / decode_seconds : 0; }
};

// Logprobs are those of the raw distribution; every sampled token has them, reasoning included.
class ReplyWriter {
 public:
  // Without a tokenizer there is no text, no stop string, no constraint and no padded vocabulary. `vocab`: logits of a row.
  ReplyWriter(const Tokenizer* tokenizer, std::span<const int32_t> prompt, int32_t vocab, ReplyOptions options);
  ~ReplyWriter();
  ReplyWriter(ReplyWriter&&) noexcept;

  // Samples the next token from logits [vocab], which stay as they are. An end token ends the reply and gives no token.
  Result<ReplyStep> next(std::span<const float> logits);
  // The same for a token that a device has sampled; device_sampling says how, or nothing where the options need logits.
  ReplyStep accept(int32_t token);
  std::optional<DeviceSampling> device_sampling() const;
  // Set once the reply has ended by itself; nothing may be sampled then.
  std::optional<Finish> finished() const;
  // Ends the reply: the step holds the events that were held back.
  ReplyStep end(Finish finish);

  Reply& reply();  // tokens, message and counts so far; prompt counts and times are the caller's to fill in

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Every option in its range; the error names it.
Result<void> check(const ReplyOptions& options);

}  // namespace lily
