// The way of a job's events from the scheduler's thread to the thread that waits for them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/scheduler.h"

namespace lily {

class Mailbox {
 public:
  void post(JobEvent event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(std::move(event));
    }
    posted_.notify_one();
  }

  std::optional<JobEvent> wait(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!posted_.wait_for(lock, timeout, [&] { return !events_.empty(); })) return std::nullopt;
    JobEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<JobEvent> events_;
  std::atomic<bool> cancelled_ = false;
};

// What submit gives out.
class MailboxJob : public Job {
 public:
  explicit MailboxJob(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}
  ~MailboxJob() override { cancel(); }
  std::optional<JobEvent> wait(std::chrono::milliseconds timeout) override { return mailbox_->wait(timeout); }
  void cancel() override { mailbox_->cancel(); }

 private:
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace lily
