// A prompt -> a reply on one session: prefill, then sample and decode until something ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "runtime/reply_writer.h"
#include "runtime/session.h"
#include "text/tokenizer.h"

namespace lily {

struct GenerateOptions {
  ReplyOptions reply;
  SyncOptions sync;  // its cancel flag stops the reply as well
  std::function<void(const ReplyEvent&)> on_event;
};

// Without a tokenizer there is no text, no stop string and no padded vocabulary.
Result<Reply> generate(Session& session, const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                       const GenerateOptions& options);

}  // namespace lily
