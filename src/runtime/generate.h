// A prompt -> a reply: prefill, then sample and decode until something ends it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/reply_stream.h"
#include "runtime/sampler.h"
#include "runtime/session.h"
#include "text/tokenizer.h"

namespace lily {

enum class Finish { end_token, stop_string, length, context_full, cancelled };

const char* name_of(Finish finish);  // "end_token", ...

struct GenerateOptions {
  SamplingParams sampling;
  std::optional<int64_t> max_tokens;  // without: to the end of the context
  std::vector<std::string> stops;     // none of them empty
  std::vector<int32_t> end_tokens;    // end the reply and are no part of it
  SyncOptions sync;                   // its cancel flag stops the reply as well
  std::function<void(const TextEvent&)> on_text;
};

struct Reply {
  std::vector<int32_t> tokens;  // as sampled, without the end token
  Finish finish = Finish::length;
  Channel channel = Channel::content;  // where it ended
  int64_t prompt_tokens = 0;           // reused ones too
  int64_t reused_tokens = 0;
  int64_t prefilled_tokens = 0;
  int64_t decoded_tokens = 0;  // decode steps: the first token comes from the prefill
  double prefill_seconds = 0;
  double decode_seconds = 0;

  double prefill_rate() const {
    return prefill_seconds > 0 ? static_cast<double>(prefilled_tokens) / prefill_seconds : 0;
  }
  double decode_rate() const { return decode_seconds > 0 ? static_cast<double>(decoded_tokens) / decode_seconds : 0; }
};

// Without a tokenizer there is no text, no stop string and no padded vocabulary.
Result<Reply> generate(Session& session, const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                       const GenerateOptions& options);

}  // namespace lily
