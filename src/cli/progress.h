// One progress line on stderr, redrawn in place. Silent where stderr is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lily::cli {

enum class ProgressUnit { bytes, tokens };

class ProgressBar {
 public:
  // Shown only once the work has taken `delay`, so that short work leaves no trace.
  ProgressBar(std::string label, int64_t total, ProgressUnit unit,
              std::chrono::milliseconds delay = std::chrono::milliseconds(500));
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(int64_t done);
  void set_total(int64_t total) { total_ = total; }
  void set_label(std::string label) { label_ = std::move(label); }

 private:
  using Clock = std::chrono::steady_clock;
  void draw(int64_t done, Clock::time_point now);

  std::string label_;
  int64_t total_;
  ProgressUnit unit_;
  std::chrono::milliseconds delay_;
  Clock::time_point start_;
  Clock::time_point drawn_{};
  int64_t first_ = -1;  // the first update's value: what was already there does not count for the rate
  bool visible_ = false;
  bool terminal_;
};

}  // namespace lily::cli
