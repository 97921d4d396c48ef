// One conversation's state and the ids it holds. Callers always give the whole prefix; the session finds what can stay.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"

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
  // Holds up to `max_tokens`, at most (and by default) the model's context. The backend must outlive the session.
  static Result<Session> create(Backend& backend, int64_t max_tokens = 0);

  // Makes the state hold exactly `tokens` (at least one), and logits() those after the last one.
  Result<SyncReport> sync(std::span<const int32_t> tokens, const SyncOptions& options = {});

  // One decode step.
  Result<void> append(int32_t token);

  std::span<const float> logits() const { return logits_; }  // [vocab], of the last token
  std::span<const int32_t> tokens() const { return tokens_; }
  int64_t capacity() const { return state_->max_tokens(); }
  bool full() const { return state_->position() >= capacity(); }

 private:
  Session(Backend& backend, std::unique_ptr<State> state);

  int64_t rewind(std::span<const int32_t> tokens);
  Result<void> prefill(std::span<const int32_t> chunk, bool last);
  void take_snapshot();

  Backend* backend_;
  std::unique_ptr<State> state_;
  std::vector<int32_t> tokens_;                       // what the state has seen
  std::vector<std::unique_ptr<Snapshot>> snapshots_;  // by ascending position
  std::vector<float> logits_;                         // [vocab]
  bool logits_current_ = false;                       // they are those of the last token
};

}  // namespace lily
