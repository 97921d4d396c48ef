// A parallel loop whose body can fail: the first error ends it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "base/result.h"
#include "base/thread_pool.h"

namespace lily {

inline Result<void> try_parallel_for(ThreadPool& pool, int64_t count,
                                     const std::function<Result<void>(int64_t index, int worker)>& body) {
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Result<void> outcome;
  pool.parallel_for(count, [&](int64_t index, int worker) {
    if (failed) return;
    Result<void> result = body(index, worker);
    if (result) return;
    const std::lock_guard lock(mutex);
    if (!failed.exchange(true)) outcome = std::move(result);
  });
  return outcome;
}

}  // namespace lily
