#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

namespace lily {
namespace {

TEST(ThreadPool, EveryIndexOnceInManyShortLoops) {
  ThreadPool pool(4);
  EXPECT_EQ(pool.threads(), 4);
  for (int loop = 0; loop < 3000; ++loop) {
    const int64_t count = loop % 17;
    std::vector<std::atomic<int>> hits(count);
    pool.parallel_for(count, [&](int64_t index, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, 4);
      hits[index].fetch_add(1);
    });
    for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
  }
}

TEST(ThreadPool, SleepingThreadsWakeUp) {
  ThreadPool pool(3);
  for (int loop = 0; loop < 20; ++loop) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than the spin
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, [&](int64_t index, int) { sum += index; });
    ASSERT_EQ(sum.load(), 4950);
  }
}

TEST(ThreadPool, WorkIsShared) {
  ThreadPool pool(2);
  std::atomic<int> by_worker[2] = {};
  pool.parallel_for(50, [&](int64_t, int worker) {
    ++by_worker[worker];
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_GT(by_worker[0], 0);
  EXPECT_GT(by_worker[1], 0);
}

TEST(ThreadPool, IdleThreadsUseNoCpu) {
  ThreadPool pool(4);
  pool.parallel_for(8, [](int64_t, int) {});
  const auto cpu_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + 1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.02);
}

}  // namespace
}  // namespace lily
