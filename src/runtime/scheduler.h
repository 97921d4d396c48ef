// Several requests at once over one model: a thread that prefills in chunks and decodes in batches.
//
// A decode step takes all that decode. Where others wait for their prompt, chunks alternate with decoding for as long as the
// chunk took, so nobody stalls for longer than a chunk and neither side starves. Where memory runs out, the youngest
// sequence is put back and computed again later. A prompt whose beginning another one is just computing waits for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"
#include "runtime/reply_writer.h"
#include "runtime/snapshot_store.h"

namespace lily {

struct JobRequest {
  std::vector<int32_t> prompt;
  std::vector<int64_t> boundaries;  // positions in the prompt worth a snapshot: ends of messages
  ReplyOptions reply;
  // Called by the scheduler's thread when the reply has ended, before its event. What it gives are tokens that certainly
  // follow the reply in the next turn; the scheduler computes them ahead.
  std::function<std::vector<int32_t>(const Reply&)> on_finished;
};

struct Progress {
  int64_t prefilled, total;  // tokens, of those that had to be prefilled
};

// In this order: any number of progress events, steps, one reply or error.
using JobEvent = std::variant<Progress, ReplyStep, Reply, Error>;

class Job {
 public:
  virtual ~Job() = default;
  // The next event; nothing if none comes in time. Any thread, but one at a time.
  virtual std::optional<JobEvent> wait(std::chrono::milliseconds timeout) = 0;
  // Ends the job within one prefill chunk or decode step. What was computed stays reusable. Dropping the job cancels it.
  virtual void cancel() = 0;
};

struct SchedulerOptions {
  int slots = 8;                         // requests that decode together
  int queue_limit = 64;                  // requests that wait beside them
  int64_t context = 0;                   // tokens of one request; 0: the model's
  int64_t chunk = 1024;                  // tokens of one prefill call
  size_t cache_bytes = size_t{4} << 30;  // budget of all states and snapshots
};

struct SchedulerStats {
  int64_t running = 0, waiting = 0;
  int64_t requests = 0, finished = 0, cancelled = 0, failed = 0, rejected = 0;
  int64_t prompt_tokens = 0, reused_tokens = 0, prefilled_tokens = 0, decoded_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
  int64_t decode_steps = 0;  // batches
  size_t cache_bytes = 0, cache_budget = 0;
  int64_t snapshots = 0;
  size_t store_bytes = 0;
};

class Scheduler {
 public:
  // Backend and tokenizer outlive it. `store`: where snapshots outlive it, or null. The destructor cancels what runs.
  static Result<std::unique_ptr<Scheduler>> create(Backend& backend, const Tokenizer& tokenizer,
                                                   const SchedulerOptions& options,
                                                   std::unique_ptr<SnapshotStore> store = nullptr);
  ~Scheduler();

  // Null: the queue is full.
  std::shared_ptr<Job> submit(JobRequest request);
  int64_t context() const;  // tokens of one request, prompt and reply
  SchedulerStats stats() const;

 private:
  struct Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lily
