// A chat service without a model: every job plays a script.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/chat_service.h"
#include "support/byte_tokenizer.h"

namespace lily::test {

using std::chrono::milliseconds;

// The steps of one reply, each after a pause.
class Script {
 public:
  Script& wait(milliseconds pause) { return pause_ += pause, *this; }
  Script& think(const std::string& text) {
    return step(Channel::reasoning, {{ReplyEvent::Kind::reasoning, text}}, text);
  }
  Script& say(const std::string& text) { return step(Channel::content, {{ReplyEvent::Kind::content, text}}, text); }
  Script& silent(const std::string& text) { return step(Channel::content, {}, text); }  // a token that is held back
  Script& call(int index, const std::string& name, const std::vector<std::string>& arguments) {
    step(Channel::tool_call, {{ReplyEvent::Kind::call_begin, name, index}}, name);
    for (const std::string& text : arguments) {
      step(Channel::tool_call, {{ReplyEvent::Kind::call_arguments, text, index}}, text);
    }
    return step(Channel::tool_call, {{ReplyEvent::Kind::call_end, "", index}}, "}");
  }
  Script& progress(int64_t done, int64_t total) { return add(Progress{done, total}); }
  Script& error(const Error& error) { return add(error); }
  Script& end(Finish finish = Finish::end_token) {
    reply_.finish = finish;
    reply_.prompt_tokens = 100;
    reply_.reused_tokens = 64;
    reply_.prefilled_tokens = 36;
    reply_.prefill_seconds = 0.5;
    reply_.decoded_tokens = static_cast<int64_t>(reply_.tokens.size());
    reply_.decode_seconds = 2;
    return add(reply_);
  }

  struct Entry {
    milliseconds pause;
    JobEvent event;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  Script& add(JobEvent event) {
    entries_.push_back({std::exchange(pause_, milliseconds(0)), std::move(event)});
    return *this;
  }
  Script& step(Channel channel, std::vector<ReplyEvent> events, const std::string& text) {
    const int32_t id = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
    reply_.tokens.push_back(id);
    reply_.reasoning_tokens += channel == Channel::reasoning;
    return add(ReplyStep{id, channel, -0.25f, {{id, -0.25f}, {'~', -3.0f}}, std::move(events)});
  }

  std::vector<Entry> entries_;
  Reply reply_;
  milliseconds pause_{0};
};

// How the jobs of a service fare.
struct JobCounts {
  std::atomic<int> running = 0, cancelled = 0;
};

class FakeJob : public Job {
 public:
  FakeJob(Script script, std::shared_ptr<JobCounts> counts)
      : script_(std::move(script)), counts_(std::move(counts)), last_(Clock::now()) {
    ++counts_->running;
  }
  ~FakeJob() override {
    cancel();
    if (!over_) --counts_->running;
  }

  std::optional<JobEvent> wait(milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (over_) return std::nullopt;
    const auto until = Clock::now() + timeout;
    const bool stuck = at_ == script_.entries().size();  // a script without an end waits for ever
    const auto due = stuck ? until + milliseconds(1) : last_ + script_.entries()[at_].pause;
    changed_.wait_until(lock, std::min(due, until), [this] { return cancelled_; });
    if (cancelled_) return end(Reply{.finish = Finish::cancelled});
    if (stuck || Clock::now() < due) return std::nullopt;
    last_ = Clock::now();
    JobEvent event = script_.entries()[at_++].event;
    if (std::holds_alternative<Reply>(event) || std::holds_alternative<Error>(event)) return end(std::move(event));
    return event;
  }

  void cancel() override {
    const std::lock_guard lock(mutex_);
    if (!over_ && !std::exchange(cancelled_, true)) ++counts_->cancelled;
    changed_.notify_all();
  }

 private:
  using Clock = std::chrono::steady_clock;

  JobEvent end(JobEvent event) {
    over_ = true;
    --counts_->running;
    return event;
  }

  const Script script_;
  const std::shared_ptr<JobCounts> counts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t at_ = 0;
  Clock::time_point last_;
  bool cancelled_ = false, over_ = false;
};

class FakeChatService : public ChatService {
 public:
  // Played by the next request; the last one by all that follow.
  void play(Script script) { play(std::vector<Script>{std::move(script)}); }
  void play(std::vector<Script> scripts) {
    const std::lock_guard lock(mutex_);
    scripts_.assign(scripts.begin(), scripts.end());
    refusal_.reset();
  }
  void refuse(ServiceError error) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }
  void fail_with_exception() { throws_ = true; }

  Started start(const ChatRequest& request) override {
    const std::lock_guard lock(mutex_);
    chats_.push_back(request);
    return next();
  }
  Started start(const CompletionRequest& request) override {
    const std::lock_guard lock(mutex_);
    completions_.push_back(request);
    return next();
  }
  Result<int64_t> count_tokens(const ChatRequest& request) override {
    return static_cast<int64_t>(request.messages.size()) * 10;
  }

  const SamplingParams& default_sampling(bool thinking) const override { return thinking ? thinking_ : plain_; }
  const Tokenizer& tokenizer() const override { return tokenizer_; }
  const std::string& model_name() const override { return name_; }
  int64_t context() const override { return 4096; }
  SchedulerStats stats() const override { return {.running = counts_->running, .prompt_tokens = 1234}; }

  std::vector<ChatRequest> chats() const {
    const std::lock_guard lock(mutex_);
    return chats_;
  }
  std::vector<CompletionRequest> completions() const {
    const std::lock_guard lock(mutex_);
    return completions_;
  }
  const JobCounts& counts() const { return *counts_; }

 private:
  Started next() {
    if (throws_) throw std::runtime_error("planted");
    if (refusal_) return *refusal_;
    Script script = scripts_.front();
    if (scripts_.size() > 1) scripts_.pop_front();
    return std::make_shared<FakeJob>(std::move(script), counts_);
  }

  mutable std::mutex mutex_;
  std::deque<Script> scripts_{Script().say("Hello").end()};
  std::optional<ServiceError> refusal_;
  std::atomic<bool> throws_ = false;
  std::vector<ChatRequest> chats_;
  std::vector<CompletionRequest> completions_;
  std::shared_ptr<JobCounts> counts_ = std::make_shared<JobCounts>();
  SamplingParams thinking_{.temperature = 0.6f}, plain_{.temperature = 0.7f, .top_p = 0.8f};
  Tokenizer tokenizer_ = byte_tokenizer();
  std::string name_ = "fake";
};

}  // namespace lily::test
