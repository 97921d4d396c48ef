#include "runtime/session.h"

#include <algorithm>
#include <string>
#include <utility>

namespace lily {
namespace {

// A long prompt is worth a snapshot every so many tokens: a prefill that is cut off goes on from there.
constexpr int64_t snapshot_interval = 4096;
// For one conversation: about thirty snapshots of the 35B model.
constexpr size_t own_cache_bytes = size_t{2} << 30;
// Where two sequences part after fewer tokens, a snapshot saves a third one too little.
constexpr int64_t min_shared_prefix = 32;

Error context_full(int64_t capacity, int64_t wanted) {
  return {.where = "context",
          .what = "context is full",
          .expected = "at most " + std::to_string(capacity) + " tokens",
          .got = std::to_string(wanted)};
}

bool cancelled(const SyncOptions& options) { return options.cancel && options.cancel->load(); }

}  // namespace

Result<Session> Session::create(Backend& backend, int64_t max_tokens, std::shared_ptr<PrefixCache> cache) {
  const int64_t context = backend.config().max_position_embeddings;
  LILY_TRY(std::unique_ptr<State> state, backend.make_state(max_tokens > 0 ? std::min(max_tokens, context) : context));
  if (!cache) cache = std::make_shared<PrefixCache>(backend, own_cache_bytes);
  return Session(backend, std::move(cache), std::move(state));
}

Session::Session(Backend& backend, std::shared_ptr<PrefixCache> cache, std::unique_ptr<State> state)
    : backend_(&backend),
      cache_(std::move(cache)),
      state_(std::move(state)),
      logits_(static_cast<size_t>(backend.config().vocab_size)) {}

Result<SyncReport> Session::sync(std::span<const int32_t> tokens, const SyncOptions& options) {
  LILY_TRY(const int64_t reused, begin(tokens, options.boundaries));
  SyncReport report{.reused = reused};
  const int64_t wanted = missing();
  if (options.progress && wanted > 0) options.progress(0, wanted);
  while (missing() > 0) {
    if (cancelled(options)) {
      report.cancelled = true;
      remember(false);
      break;
    }
    LILY_CHECK(prefill_chunk(options.chunk));
    report.prefilled = wanted - missing();
    if (options.progress) options.progress(report.prefilled, wanted);
  }
  return report;
}

Result<int64_t> Session::begin(std::span<const int32_t> tokens, std::vector<int64_t> boundaries) {
  const auto total = static_cast<int64_t>(tokens.size());
  if (total == 0) return Error{.where = "prompt", .what = "no tokens"};
  if (total > capacity()) return context_full(capacity(), total);
  rewind(tokens);
  goal_.assign(tokens.begin(), tokens.end());
  boundaries_ = std::move(boundaries);
  if (const int64_t parting = cache_->shared_prefix(tokens); parting >= min_shared_prefix && parting < total) {
    boundaries_.push_back(parting);
  }
  std::sort(boundaries_.begin(), boundaries_.end());
  last_snapshot_ = state_->position();
  return state_->position();
}

// Brings the state to the longest prefix of `tokens` that it can stand at.
void Session::rewind(std::span<const int32_t> tokens) {
  const int64_t held = state_->position(), total = static_cast<int64_t>(tokens.size());
  const auto [mine, others] = std::mismatch(tokens_.begin(), tokens_.end(), tokens.begin(), tokens.end());
  const bool goes_on = mine == tokens_.end() && (held < total || logits_current_);
  // Logits come only from a prefill, so that at least the last token is left for it.
  const int64_t limit = total - 1;
  if (goes_on && cache_->longest(tokens, limit) <= held) return;
  const std::shared_ptr<const Snapshot> snapshot = cache_->find(tokens, limit);
  snapshot ? backend_->restore(*state_, *snapshot) : backend_->reset(*state_);
  tokens_.assign(tokens.begin(), tokens.begin() + state_->position());
  logits_current_ = false;
}

// The end of the next chunk: cut short at a boundary, so that a snapshot can be taken there.
int64_t Session::chunk_end(int64_t tokens) const {
  const int64_t position = state_->position();
  const int64_t end = std::min(static_cast<int64_t>(goal_.size()), position + std::max<int64_t>(tokens, 1));
  const auto boundary = std::upper_bound(boundaries_.begin(), boundaries_.end(), position);
  return boundary == boundaries_.end() ? end : std::min(end, *boundary);
}

bool Session::is_boundary(int64_t position) const {
  return std::binary_search(boundaries_.begin(), boundaries_.end(), position);
}

Result<void> Session::prefill_chunk(int64_t tokens) {
  const int64_t begin = state_->position(), end = chunk_end(tokens);
  const auto chunk = std::span(goal_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const bool last = end == static_cast<int64_t>(goal_.size());
  const std::span<float> logits = last ? std::span<float>(logits_) : std::span<float>();
  logits_current_ = false;
  LILY_CHECK(backend_->prefill(*state_, chunk, last ? WantLogits::last : WantLogits::none, logits));
  tokens_.insert(tokens_.end(), chunk.begin(), chunk.end());
  logits_current_ = last;
  const bool wanted = is_boundary(end);
  if (wanted || (!last && end - last_snapshot_ >= snapshot_interval)) remember(wanted);
  return {};
}

Result<void> Session::append(int32_t token) {
  Session* const self = this;
  return append_each({&self, 1}, {&token, 1});
}

Result<void> Session::append_each(std::span<Session* const> sessions, std::span<const int32_t> tokens) {
  std::vector<DecodeItem> batch;
  for (size_t i = 0; i < sessions.size(); ++i) {
    Session& session = *sessions[i];
    if (session.full()) return context_full(session.capacity(), session.state_->position() + 1);
    batch.push_back({session.state_.get(), tokens[i], session.logits_});
  }
  for (Session* session : sessions) session->logits_current_ = false;
  LILY_CHECK(sessions[0]->backend_->decode(batch));
  for (size_t i = 0; i < sessions.size(); ++i) {
    sessions[i]->tokens_.push_back(tokens[i]);
    sessions[i]->logits_current_ = true;
  }
  return {};
}

Result<void> Session::append_ahead(int32_t token, const DeviceSampling& sampling,
                                   const std::function<bool(int32_t)>& on_token) {
  if (full()) return context_full(capacity(), state_->position() + 1);
  logits_current_ = false;
  int32_t next = token;
  return backend_->decode_ahead(*state_, token, sampling, [&](int32_t sampled) {
    tokens_.push_back(std::exchange(next, sampled));
    return on_token(sampled);
  });
}

void Session::remember(bool keep) {
  if (tokens_.empty()) return;
  last_snapshot_ = state_->position();
  if (std::shared_ptr<const Snapshot> snapshot = backend_->snapshot(*state_))
    cache_->insert(tokens_, std::move(snapshot), keep);
}

}  // namespace lily
