// Ctrl-C as a flag, for as long as one of these lives. Only one at a time.
#pragma once

#include <signal.h>

#include <atomic>

namespace lily::cli {

class Interrupt {
 public:
  // once: the second Ctrl-C ends the program as if nobody caught it.
  enum class Catch { once, always };
  explicit Interrupt(Catch mode);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>* flag() const;
  bool requested() const { return flag()->load(); }
  // Whether it was pressed since the last call.
  bool take();

 private:
  using Action = struct sigaction;
  Action previous_{};
};

}  // namespace lily::cli
