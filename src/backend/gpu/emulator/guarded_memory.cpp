// A jump to another stack is what __longjmp_chk takes for an overrun.
#undef _FORTIFY_SOURCE

#include "backend/gpu/emulator/guarded_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace lily::gpu::emulator {
namespace {

constexpr size_t guard_bytes = size_t{16} << 20;  // on each side: address space only
constexpr std::byte poison{0xff}, canary{0xa5};

#ifdef MAP_NORESERVE
constexpr int map_flags = MAP_PRIVATE | MAP_ANON | MAP_NORESERVE;
#else
constexpr int map_flags = MAP_PRIVATE | MAP_ANON;
#endif

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

GuardedMemory::GuardedMemory(size_t bytes) : bytes_(bytes) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE)), rounded = round_up(bytes, 16);
  if (bytes > SIZE_MAX / 2) return;
  page_bytes_ = round_up(std::max<size_t>(rounded, 1), page);
  mapped_ = page_bytes_ + 2 * guard_bytes;
  void* const mapping = ::mmap(nullptr, mapped_, PROT_NONE, map_flags, -1, 0);
  if (mapping == MAP_FAILED) return;
  mapping_ = static_cast<std::byte*>(mapping);
  pages_ = mapping_ + guard_bytes;
  if (::mprotect(pages_, page_bytes_, PROT_READ | PROT_WRITE) != 0) return;
  data_ = pages_ + page_bytes_ - rounded;
  std::fill(pages_, data_, canary);
  std::memset(data_, static_cast<int>(poison), bytes);
  std::fill(data_ + bytes, data_ + rounded, canary);
}

GuardedMemory::~GuardedMemory() {
  if (mapping_) ::munmap(mapping_, mapped_);
}

void GuardedMemory::set_writable(bool writable) {
  ::mprotect(pages_, page_bytes_, writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

bool GuardedMemory::check(std::byte* from, std::byte* to) {
  // All bytes are the first one: a comparison of the range with itself, one byte on.
  if (from == to || (*from == canary && std::memcmp(from, from + 1, static_cast<size_t>(to - from) - 1) == 0))
    return true;
  std::fill(from, to, canary);
  return false;
}
bool GuardedMemory::check_before() { return check(pages_, data_); }
bool GuardedMemory::check_after() { return check(data_ + bytes_, pages_ + page_bytes_); }

namespace {

thread_local MemoryTrap* trap_of_thread = nullptr;
struct sigaction handlers_before[2];  // of SIGSEGV, and of SIGBUS, which macOS sends for pages without rights

void on_fault(int signal, siginfo_t* info, void* context) {
  if (MemoryTrap* const trap = trap_of_thread) {
    trap->address = info->si_addr;
    _longjmp(trap->place, MemoryTrap::sprung);
  }
  const struct sigaction& before = handlers_before[signal == SIGBUS];
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    ::sigaction(signal, &before, nullptr);  // the access is tried again, and ends the process
  } else {
    before.sa_handler(signal);
  }
}

bool install_handlers() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // it never returns, so nothing would unblock the signal
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, &handlers_before[0]);
  ::sigaction(SIGBUS, &action, &handlers_before[1]);
  return true;
}

// A thread whose own stack has ended handles that on another.
class AlternateStack {
 public:
  AlternateStack() {
    stack_t now = {};
    if (::sigaltstack(nullptr, &now) != 0 || !(now.ss_flags & SS_DISABLE)) return;
    memory_ = std::make_unique<std::byte[]>(bytes);
    stack_t stack = {};
    stack.ss_sp = memory_.get();
    stack.ss_size = bytes;
    ::sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    if (!memory_) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    none.ss_size = bytes;
    ::sigaltstack(&none, nullptr);
  }
  void touch() {}

 private:
  static constexpr size_t bytes = 64 * 1024;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace

void set_memory_trap(MemoryTrap* trap) {
  static const bool installed = install_handlers();
  static_cast<void>(installed);
  thread_local AlternateStack stack;
  stack.touch();
  trap_of_thread = trap;
}

}  // namespace lily::gpu::emulator
