// One sequence: a state and the ids it holds. Callers always give the whole prefix; the session finds what can be reused, in
// its own state or in the cache, and leaves snapshots there for others.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "runtime/prefix_cache.h"

namespace lily {

struct SyncOptions {
  int64_t chunk = 1024;                                       // tokens of one prefill call
  std::vector<int64_t> boundaries;                            // positions worth a snapshot: ends of messages
  std::function<void(int64_t done, int64_t total)> progress;  // tokens prefilled, of those to be prefilled
  const std::atomic<bool>* cancel = nullptr;                  // looked at between chunks
};

struct SyncReport {
  int64_t reused = 0;
  int64_t prefilled = 0;
  bool cancelled = false;  // what was prefilled until then is kept
};

class Session {
 public:
  // Holds up to `max_tokens`, at most (and by default) the model's context. The backend must outlive the session. Without a
  // cache it gets one of its own.
  static Result<Session> create(Backend& backend, int64_t max_tokens = 0, std::shared_ptr<PrefixCache> cache = nullptr);

  // Makes the state hold exactly `tokens` (at least one), and logits() those after the last one: begin, then prefill_chunk
  // until nothing is missing.
  Result<SyncReport> sync(std::span<const int32_t> tokens, const SyncOptions& options = {});

  // Sets the goal and goes back to the longest prefix of it that can be had: how many tokens that is.
  Result<int64_t> begin(std::span<const int32_t> tokens, std::vector<int64_t> boundaries);
  int64_t missing() const { return std::max<int64_t>(0, static_cast<int64_t>(goal_.size()) - state_->position()); }
  Result<void> prefill_chunk(int64_t tokens);  // at most so many of those missing

  // One decode step.
  Result<void> append(int32_t token);
  // The same for several sessions at once, of the same backend: tokens[i] for sessions[i].
  static Result<void> append_each(std::span<Session* const> sessions, std::span<const int32_t> tokens);

  // Decode steps from `token` on whose tokens the device samples, until on_token says false or the session is full. There are
  // no logits afterwards; `samples`: the backend can do it.
  bool samples() const { return backend_->samples(); }
  Result<void> append_ahead(int32_t token, const DeviceSampling& sampling,
                            const std::function<bool(int32_t)>& on_token);

  // Leaves a snapshot of what the state holds in the cache; `keep`: in its store as well.
  void remember(bool keep);

  std::span<const float> logits() const { return logits_; }  // [vocab], of the last token
  std::span<const int32_t> tokens() const { return tokens_; }
  int64_t capacity() const { return state_->max_tokens(); }
  bool full() const { return state_->position() >= capacity(); }

 private:
  Session(Backend& backend, std::shared_ptr<PrefixCache> cache, std::unique_ptr<State> state);

  void rewind(std::span<const int32_t> tokens);
  int64_t chunk_end(int64_t tokens) const;
  bool is_boundary(int64_t position) const;

  Backend* backend_;
  std::shared_ptr<PrefixCache> cache_;
  std::unique_ptr<State> state_;
  std::vector<int32_t> tokens_;      // what the state has seen
  std::vector<int32_t> goal_;        // what it shall hold; begins with tokens_ while something is missing
  std::vector<int64_t> boundaries_;  // in the goal, ascending
  int64_t last_snapshot_ = 0;        // position, of those on the way to the goal
  std::vector<float> logits_;        // [vocab]
  bool logits_current_ = false;      // they are those of the last token
};

}  // namespace lily
