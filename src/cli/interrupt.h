// Ctrl-C, and where asked for SIGTERM, as a flag, for as long as one of these lives. Only one at a time.
#pragma once

#include <signal.h>

#include <atomic>

namespace lily::cli {

class Interrupt {
 public:
  // once: the second signal ends the program as if nobody caught it.
  enum class Catch { once, always };
  enum class Signals { interrupt, interrupt_and_terminate };
  explicit Interrupt(Catch mode, Signals signals = Signals::interrupt);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>* flag() const;
  bool requested() const { return flag()->load(); }
  // Whether it was pressed since the last call.
  bool take();

 private:
  using Action = struct sigaction;
  const Signals signals_;
  Action previous_{}, previous_terminate_{};
};

}  // namespace lily::cli
