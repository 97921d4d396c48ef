#include "runtime/generate.h"

#include <utility>

#include "base/stopwatch.h"

namespace lily {
namespace {

bool cancelled(const GenerateOptions& options) { return options.sync.cancel && options.sync.cancel->load(); }

void emit(const GenerateOptions& options, const ReplyStep& step) {
  if (!options.on_event) return;
  for (const ReplyEvent& event : step.events) options.on_event(event);
}

// The rest of a reply whose tokens the device samples; says how it ended.
Result<Finish> decode_ahead(Session& session, ReplyWriter& writer, const DeviceSampling& sampling,
                            const GenerateOptions& options, const Stopwatch& watch) {
  Reply& reply = writer.reply();
  if (session.full()) return Finish::context_full;
  LILY_CHECK(session.append_ahead(reply.tokens.back(), sampling, [&](int32_t token) {
    ++reply.decoded_tokens;
    emit(options, writer.accept(token));
    reply.decode_seconds = watch.seconds();
    return !writer.finished() && !cancelled(options);
  }));
  return writer.finished() ? *writer.finished() : cancelled(options) ? Finish::cancelled : Finish::context_full;
}

// Samples and decodes until the reply ends; says how it did.
Result<Finish> decode(Session& session, ReplyWriter& writer, const GenerateOptions& options) {
  Reply& reply = writer.reply();
  const Stopwatch watch;
  const std::optional<DeviceSampling> sampling = session.samples() ? writer.device_sampling() : std::nullopt;
  while (!writer.finished()) {
    if (cancelled(options)) return Finish::cancelled;
    if (!reply.tokens.empty() && sampling) return decode_ahead(session, writer, *sampling, options, watch);
    if (!reply.tokens.empty()) {  // the last of a reply is never given to the model
      if (session.full()) return Finish::context_full;
      LILY_CHECK(session.append(reply.tokens.back()));
      ++reply.decoded_tokens;
    }
    LILY_TRY(const ReplyStep step, writer.next(session.logits()));
    emit(options, step);
    reply.decode_seconds = watch.seconds();
  }
  return *writer.finished();
}

}  // namespace

Result<Reply> generate(Session& session, const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                       const GenerateOptions& options) {
  LILY_CHECK(check(options.reply));
  ReplyWriter writer(tokenizer, prompt, static_cast<int32_t>(session.logits().size()), options.reply);
  Reply& reply = writer.reply();
  const Stopwatch watch;
  LILY_TRY(const SyncReport report, session.sync(prompt, options.sync));
  reply.prompt_tokens = static_cast<int64_t>(prompt.size());
  reply.reused_tokens = report.reused;
  reply.prefilled_tokens = report.prefilled;
  reply.prefill_seconds = watch.seconds();
  Finish finish = Finish::cancelled;
  if (!report.cancelled) {
    LILY_TRY(finish, decode(session, writer, options));
  }
  emit(options, writer.end(finish));
  return std::move(reply);
}

}  // namespace lily
