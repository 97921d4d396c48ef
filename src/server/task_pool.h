// Threads for connections: as many as there are at a time, up to a limit.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lily::server {

class TaskPool {
 public:
  explicit TaskPool(size_t limit) : limit_(limit) {}
  ~TaskPool() { finish(); }
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  // Waits for its turn where all threads are busy.
  void add(std::function<void()> task);
  // Runs what was added, and returns when it is done.
  void finish();

 private:
  void work();

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool finishing_ = false;
};

}  // namespace lily::server
