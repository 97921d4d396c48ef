// A fixed set of threads that share one loop at a time.
//
// Chunks are claimed one by one, so a thread that the system takes away costs one chunk, not the whole loop.
// Between loops threads spin for some microseconds (a decode step is hundreds of short loops), then sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace lily {

class ThreadPool {
 public:
  // `threads` in all, the calling one included; 0: one for each core this process may run on.
  // Fewer where the system does not give so many.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // body(index, worker) for every index of [0, count); worker < threads() is the same for calls on one thread.
  // Returns when all are done. Called from one thread at a time, never from inside a body.
  template <class Body>
  void parallel_for(int64_t count, const Body& body) {
    run(
        count, [](const void* b, int64_t index, int worker) { (*static_cast<const Body*>(b))(index, worker); }, &body);
  }

 private:
  // A body without its type: a std::function would allocate in every loop.
  using Call = void (*)(const void* body, int64_t index, int worker);

  void run(int64_t count, Call call, const void* body);
  void work(int worker);
  bool claim_and_run(int worker);
  bool has_work() const { return static_cast<uint32_t>(ticket_.load()) != 0; }

  // Loop number in the high half, unclaimed chunks in the low half: one compare-exchange claims a chunk of the loop
  // that is really there, so a thread that wakes up late can never run an old one.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int64_t> unfinished_{0};
  Call call_ = nullptr;
  const void* body_ = nullptr;
  int64_t count_ = 0;

  std::mutex mutex_;
  std::condition_variable work_there_, all_done_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace lily
