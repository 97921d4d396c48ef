// What the threads of one pull share: the wish to stop, the bytes so far, and remarks for the user.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"

namespace lily::hub {

class Activity {
 public:
  using Note = std::function<void(const std::string&)>;
  Activity(const std::atomic<bool>& interrupted, Note on_note)
      : interrupted_(interrupted), on_note_(std::move(on_note)) {}

  bool interrupted() const { return interrupted_; }
  bool stopping() const { return failed_ || interrupted_; }
  void fail() { failed_ = true; }

  // Sleeps in small steps; false when it was cut short.
  bool sleep(std::chrono::milliseconds duration) const;

  void add_bytes(int64_t count) { bytes_ += count; }
  int64_t bytes() const { return bytes_; }

  // Passes a remark on, one at a time, from whichever thread.
  void note(const std::string& text);

 private:
  const std::atomic<bool>& interrupted_;  // set by the user's Ctrl-C
  std::atomic<bool> failed_ = false;      // one file cannot be had, so the others need not go on
  std::atomic<int64_t> bytes_ = 0;        // on disk, of all files
  std::mutex mutex_;
  const Note on_note_;
};

inline Error interruption() { return {.what = "interrupted", .exit_code = 130}; }

}  // namespace lily::hub
