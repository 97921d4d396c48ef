#include "runtime/session.h"

#include <algorithm>
#include <string>

namespace lily {
namespace {

// 64 MB each for the 35B model: enough for "regenerate" and "edit the last messages", not worth more memory.
constexpr size_t max_snapshots = 4;

Error context_full(int64_t capacity, int64_t wanted) {
  return {.where = "context",
          .what = "context is full",
          .expected = "at most " + std::to_string(capacity) + " tokens",
          .got = std::to_string(wanted)};
}

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

// The end of the next chunk: cut short at a boundary, so that a snapshot can be taken there.
int64_t chunk_end(int64_t position, int64_t total, const SyncOptions& options) {
  int64_t end = std::min(total, position + std::max<int64_t>(options.chunk, 1));
  for (const int64_t boundary : options.boundaries) {
    if (boundary > position) end = std::min(end, boundary);
  }
  return end;
}

bool is_boundary(int64_t position, const SyncOptions& options) {
  return std::find(options.boundaries.begin(), options.boundaries.end(), position) != options.boundaries.end();
}

bool cancelled(const SyncOptions& options) { return options.cancel && options.cancel->load(); }

}  // namespace

Result<Session> Session::create(Backend& backend, int64_t max_tokens) {
  const int64_t context = backend.config().max_position_embeddings;
  LILY_TRY(std::unique_ptr<State> state, backend.make_state(max_tokens > 0 ? std::min(max_tokens, context) : context));
  return Session(backend, std::move(state));
}

Session::Session(Backend& backend, std::unique_ptr<State> state)
    : backend_(&backend), state_(std::move(state)), logits_(static_cast<size_t>(backend.config().vocab_size)) {}

Result<SyncReport> Session::sync(std::span<const int32_t> tokens, const SyncOptions& options) {
  const auto total = static_cast<int64_t>(tokens.size());
  if (total == 0) return Error{.where = "prompt", .what = "no tokens"};
  if (total > capacity()) return context_full(capacity(), total);
  SyncReport report{.reused = rewind(tokens)};
  const int64_t wanted = total - report.reused;
  if (options.progress && wanted > 0) options.progress(0, wanted);
  while (state_->position() < total) {
    if (cancelled(options)) {
      report.cancelled = true;
      break;
    }
    const int64_t begin = state_->position();
    const int64_t end = chunk_end(begin, total, options);
    LILY_CHECK(prefill(tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), end == total));
    report.prefilled += end - begin;
    if (is_boundary(end, options)) take_snapshot();
    if (options.progress) options.progress(report.prefilled, wanted);
  }
  return report;
}

// Brings the state back to the longest prefix of `tokens` that it can stand at, and gives that length.
int64_t Session::rewind(std::span<const int32_t> tokens) {
  const int64_t held = state_->position();
  const int64_t common = common_prefix(tokens_, tokens);
  const bool complete = common == static_cast<int64_t>(tokens.size());
  if (common == held && (!complete || logits_current_)) return held;
  // Logits come only from a prefill, so that at least the last token is left for it.
  const int64_t limit = std::min(common, static_cast<int64_t>(tokens.size()) - 1);
  while (!snapshots_.empty() && snapshots_.back()->position() > limit) snapshots_.pop_back();
  snapshots_.empty() ? backend_->reset(*state_) : backend_->restore(*state_, *snapshots_.back());
  tokens_.resize(static_cast<size_t>(state_->position()));
  logits_current_ = false;
  return state_->position();
}

Result<void> Session::prefill(std::span<const int32_t> chunk, bool last) {
  logits_current_ = false;
  const std::span<float> logits = last ? std::span<float>(logits_) : std::span<float>();
  LILY_CHECK(backend_->prefill(*state_, chunk, last ? WantLogits::last : WantLogits::none, logits));
  tokens_.insert(tokens_.end(), chunk.begin(), chunk.end());
  logits_current_ = last;
  return {};
}

Result<void> Session::append(int32_t token) {
  if (full()) return context_full(capacity(), state_->position() + 1);
  logits_current_ = false;
  DecodeItem item{.state = state_.get(), .token = token, .logits = logits_};
  LILY_CHECK(backend_->decode({&item, 1}));
  tokens_.push_back(token);
  logits_current_ = true;
  return {};
}

void Session::take_snapshot() {
  if (snapshots_.size() == max_snapshots) snapshots_.erase(snapshots_.begin());
  snapshots_.push_back(backend_->snapshot(*state_));
}

}  // namespace lily
