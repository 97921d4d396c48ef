#include "runtime/generate.h"

#include <algorithm>
#include <chrono>

namespace lily {
namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

Result<void> check(const GenerateOptions& options) {
  LILY_CHECK(check(options.sampling));
  for (const std::string& stop : options.stops) {
    if (stop.empty()) return Error{.where = "stop", .what = "an empty stop string"};
  }
  return {};
}

// One reply in the making.
class Generation {
 public:
  Generation(Session& session, const Tokenizer* tokenizer, std::span<const int32_t> prompt,
             const GenerateOptions& options)
      : session_(session), options_(options), sampler_(options.sampling, sampled_ids(session, tokenizer)) {
    if (tokenizer) stream_.emplace(*tokenizer, prompt, options.stops);
  }

  Result<Reply> run(std::span<const int32_t> prompt) {
    LILY_CHECK(prefill(prompt));
    if (reply_.finish != Finish::cancelled) LILY_CHECK(decode());
    if (stream_) {
      reply_.channel = stream_->channel();
      emit(stream_->finish());
    }
    return std::move(reply_);
  }

 private:
  static int32_t sampled_ids(const Session& session, const Tokenizer* tokenizer) {
    const auto vocab = static_cast<int32_t>(session.logits().size());
    return tokenizer ? std::min(vocab, tokenizer->size()) : vocab;
  }

  Result<void> prefill(std::span<const int32_t> prompt) {
    const Stopwatch watch;
    LILY_TRY(const SyncReport report, session_.sync(prompt, options_.sync));
    reply_.prompt_tokens = static_cast<int64_t>(prompt.size());
    reply_.reused_tokens = report.reused;
    reply_.prefilled_tokens = report.prefilled;
    reply_.prefill_seconds = watch.seconds();
    if (report.cancelled) reply_.finish = Finish::cancelled;
    return {};
  }

  Result<void> decode() {
    const Stopwatch watch;
    while (true) {
      LILY_TRY(const std::optional<Finish> finish, step());
      reply_.decode_seconds = watch.seconds();
      if (finish) {
        reply_.finish = *finish;
        return {};
      }
    }
  }

  // Gives the model the last token and samples the next; the last of a reply is never given to it.
  Result<std::optional<Finish>> step() {
    if (options_.sync.cancel && options_.sync.cancel->load()) return Ended(Finish::cancelled);
    if (static_cast<int64_t>(reply_.tokens.size()) == options_.max_tokens) return Ended(Finish::length);
    if (!reply_.tokens.empty()) {
      if (session_.full()) return Ended(Finish::context_full);
      LILY_CHECK(session_.append(reply_.tokens.back()));
      ++reply_.decoded_tokens;
    }
    scratch_.assign(session_.logits().begin(), session_.logits().end());
    LILY_TRY(const int32_t token, sampler_.sample(scratch_));
    const auto& ends = options_.end_tokens;
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) return Ended(Finish::end_token);
    reply_.tokens.push_back(token);
    if (stream_) emit(stream_->push(token));
    if (stream_ && stream_->stopped()) return Ended(Finish::stop_string);
    return Ended();
  }

  void emit(const TextEvent& event) {
    if (options_.on_text && !event.text.empty()) options_.on_text(event);
  }

  using Ended = std::optional<Finish>;

  Session& session_;
  const GenerateOptions& options_;
  Sampler sampler_;
  std::optional<ReplyStream> stream_;
  std::vector<float> scratch_;  // [vocab]
  Reply reply_;
};

}  // namespace

const char* name_of(Finish finish) {
  switch (finish) {
    case Finish::end_token: return "end_token";
    case Finish::stop_string: return "stop_string";
    case Finish::length: return "length";
    case Finish::context_full: return "context_full";
    case Finish::cancelled: return "cancelled";
  }
  return "";
}

Result<Reply> generate(Session& session, const Tokenizer* tokenizer, std::span<const int32_t> prompt,
                       const GenerateOptions& options) {
  LILY_CHECK(check(options));
  return Generation(session, tokenizer, prompt, options).run(prompt);
}

}  // namespace lily
