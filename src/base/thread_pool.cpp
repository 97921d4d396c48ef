#include "base/thread_pool.h"

#include <algorithm>
#include <cassert>
#include <system_error>

#ifdef __linux__
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lily {
namespace {

// 20 to 50 us on current cores: longer than the serial work between two loops of a decode step, shorter than the time
// that waking up a thread in a virtual machine takes.
constexpr int spin_rounds = 1000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

int usable_cores() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = usable_cores();
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error&) {
    // The system gives no more threads: those that are there do the work.
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_there_.notify_all();
  for (auto& worker : workers_) worker.join();
}

bool ThreadPool::claim_and_run(int worker) {
  uint64_t ticket = ticket_.load();
  do {
    if (static_cast<uint32_t>(ticket) == 0) return false;
  } while (!ticket_.compare_exchange_weak(ticket, ticket - 1));
  call_(body_, count_ - static_cast<uint32_t>(ticket),
        worker);  // in ascending order: neighbours lie side by side in memory
  if (unfinished_.fetch_sub(1) == 1 && caller_sleeps_.load()) {
    std::lock_guard lock(mutex_);
    all_done_.notify_one();
  }
  return true;
}

void ThreadPool::work(int worker) {
  while (!stop_) {
    while (claim_and_run(worker)) {
    }
    for (int i = 0; i < spin_rounds && !has_work(); ++i) pause();
    if (has_work()) continue;
    std::unique_lock lock(mutex_);
    ++sleepers_;
    work_there_.wait(lock, [this] { return has_work() || stop_; });
    --sleepers_;
  }
}

void ThreadPool::run(int64_t count, Call call, const void* body) {
  assert(count <= INT32_MAX);
  if (workers_.empty() || count <= 1) {
    for (int64_t i = 0; i < count; ++i) call(body, i, 0);
    return;
  }
  call_ = call;
  body_ = body;
  count_ = count;
  unfinished_ = count;
  const uint64_t loop = (ticket_.load() >> 32) + 1;
  ticket_ = loop << 32 | static_cast<uint64_t>(count);
  if (sleepers_.load() > 0) {
    std::lock_guard lock(mutex_);
    work_there_.notify_all();
  }
  while (claim_and_run(0)) {
  }
  for (int i = 0; i < spin_rounds && unfinished_.load() > 0; ++i) pause();
  if (unfinished_.load() == 0) return;
  std::unique_lock lock(mutex_);
  caller_sleeps_ = true;
  all_done_.wait(lock, [this] { return unfinished_.load() == 0; });
  caller_sleeps_ = false;
}

}  // namespace lily
