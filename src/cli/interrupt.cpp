#include "cli/interrupt.h"

namespace lily::cli {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

void note(int) { interrupted = true; }

void note_and_let_go(int) {
  interrupted = true;
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt(Catch mode, Signals signals) : signals_(signals) {
  interrupted = false;
  Action action{};  // no SA_RESTART: a read at the prompt has to return
  action.sa_handler = mode == Catch::once ? note_and_let_go : note;
  ::sigaction(SIGINT, &action, &previous_);
  if (signals_ == Signals::interrupt_and_terminate) ::sigaction(SIGTERM, &action, &previous_terminate_);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &previous_, nullptr);
  if (signals_ == Signals::interrupt_and_terminate) ::sigaction(SIGTERM, &previous_terminate_, nullptr);
}

const std::atomic<bool>* Interrupt::flag() const { return &interrupted; }

bool Interrupt::take() { return interrupted.exchange(false); }

}  // namespace lily::cli
