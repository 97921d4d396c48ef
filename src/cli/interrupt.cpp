#include "cli/interrupt.h"

namespace lily::cli {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

}  // namespace

Interrupt::Interrupt(Catch mode) {
  interrupted = false;
  Action action{};
  action.sa_handler = [](int) { interrupted = true; };
  // No SA_RESTART: a read at the prompt has to return.
  action.sa_flags = mode == Catch::once ? static_cast<int>(SA_RESETHAND) : 0;
  ::sigaction(SIGINT, &action, &previous_);
}

Interrupt::~Interrupt() { ::sigaction(SIGINT, &previous_, nullptr); }

const std::atomic<bool>* Interrupt::flag() const { return &interrupted; }

bool Interrupt::take() { return interrupted.exchange(false); }

}  // namespace lily::cli
