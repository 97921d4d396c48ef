#include "server/reply_loop.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/wire.h"

namespace lily::server {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto look_around = 100ms;       // between two looks at the client
constexpr auto turn = 10ms;               // of each job, where there are several
constexpr int most_rounds = 256;          // of events that wait, before another look at the client
constexpr size_t write_bytes = 16 << 10;  // more waiting events than that are sent by more than one write

class ReplyLoop {
 public:
  ReplyLoop(std::vector<std::shared_ptr<Job>> jobs, ReplyFormat& format, Client& client, const LoopOptions& options)
      : jobs_(std::move(jobs)), format_(format), client_(client), options_(options), active_(jobs_.size()) {}

  LoopResult run() {
    format_.begin(events_);
    // The first byte tells the client that its request is being worked on, whatever the queue is like.
    if (events_.empty()) events_.push_back(format_.keep_alive());
    flush();
    while (active_ > 0 && !ended()) {
      if (!take_waiting()) wait_a_little();
      flush();
      look_at_client();
    }
    if (!ended()) {
      format_.end(events_);
      flush();
    }
    for (const auto& job : jobs_) {
      if (job) job->cancel();
    }
    return std::move(result_);
  }

 private:
  bool ended() const { return result_.gone || result_.error; }

  // All that the jobs have ready, or as much as one write should hold.
  bool take_waiting() {
    bool any = false;
    int rounds = 0;
    for (bool more = true; more && !ended() && waiting_bytes_ < write_bytes && rounds < most_rounds; ++rounds) {
      more = false;
      for (size_t i = 0; i < jobs_.size() && !ended(); ++i) more |= take(i, 0ms);
      any |= more;
    }
    return any;
  }

  void wait_a_little() {
    if (active_ == 0) return;
    do next_ = (next_ + 1) % jobs_.size();
    while (!jobs_[next_]);
    auto slice = std::chrono::duration_cast<std::chrono::milliseconds>(active_ > 1 ? turn : look_around);
    if (options_.stream) slice = std::clamp(until_keep_alive(), 1ms, slice);
    take(next_, slice);
  }

  bool take(size_t index, std::chrono::milliseconds timeout) {
    if (!jobs_[index]) return false;
    std::optional<JobEvent> event = jobs_[index]->wait(timeout);
    if (!event) return false;
    const int choice = static_cast<int>(index);
    if (const auto* step = std::get_if<ReplyStep>(&*event)) format_.step(choice, *step, events_);
    else if (const auto* reply = std::get_if<Reply>(&*event)) finish(choice, *reply);
    else if (const auto* error = std::get_if<Error>(&*event)) {
      fail(to_api_error({.kind = ServiceError::Kind::internal, .error = *error}));
    }
    pack();
    return true;
  }

  void finish(int choice, const Reply& reply) {
    result_.tokens += static_cast<int64_t>(reply.tokens.size());
    result_.prompt_tokens = reply.prompt_tokens;
    result_.cached_tokens = std::max(result_.cached_tokens, reply.reused_tokens);
    result_.known_tokens = std::max(result_.known_tokens, reply.known_tokens);
    jobs_[static_cast<size_t>(choice)] = nullptr;
    --active_;
    if (reply.finish == Finish::cancelled) return fail_by_end();
    format_.finish(choice, reply, events_);
  }

  void fail_by_end() {
    fail({.status = 503, .type = "server_error", .code = "shutting_down", .message = "the server stopped the reply"});
  }

  void fail(const ApiError& error) {
    format_.fail(error, events_);
    flush();
    result_.error = error;
  }

  // The events as text, all of which one write sends.
  void pack() {
    if (options_.stream) {
      for (const SseEvent& event : events_) text_ += sse_text(event);
    }
    events_.clear();
    waiting_bytes_ = text_.size();
  }

  void flush() {
    pack();
    waiting_bytes_ = 0;
    if (text_.empty()) return;
    if (!result_.gone && !client_.send(text_)) result_.gone = true;
    text_.clear();
    last_sent_ = Clock::now();
  }

  std::chrono::milliseconds until_keep_alive() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(last_sent_ + options_.keep_alive - Clock::now());
  }

  void look_at_client() {
    if (ended() || active_ == 0) return;
    if (options_.closing && *options_.closing) return fail_by_end();
    if (options_.stream && until_keep_alive() <= 0ms) {
      events_.push_back(format_.keep_alive());
      flush();
    }
    const auto now = Clock::now();
    if (now - last_look_ < look_around / 2) return;
    last_look_ = now;
    if (client_.gone()) result_.gone = true;
  }

  std::vector<std::shared_ptr<Job>> jobs_;  // null: finished
  ReplyFormat& format_;
  Client& client_;
  const LoopOptions options_;
  size_t active_;
  size_t next_ = 0;
  std::vector<SseEvent> events_;
  std::string text_;
  size_t waiting_bytes_ = 0;
  Clock::time_point last_sent_ = Clock::now(), last_look_ = Clock::now();
  LoopResult result_;
};

}  // namespace

LoopResult run_reply(std::vector<std::shared_ptr<Job>> jobs, ReplyFormat& format, Client& client,
                     const LoopOptions& options) {
  return ReplyLoop(std::move(jobs), format, client, options).run();
}

}  // namespace lily::server
