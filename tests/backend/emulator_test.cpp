// The emulator finds what it is there to find: each test plants one fault.
#include "backend/gpu/emulator/emulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>

#include "backend/gpu/emulator/guarded_memory.h"
#include "backend/gpu/emulator/lanes.h"
#include "kernels/dialect/host.h"

namespace lily {
namespace {

using gpu::Dispatch;
using gpu::emulator::Fault;
using gpu::emulator::KernelEntry;
using gpu::emulator::ThreadgroupRunner;
using kernels::uint;
using testing::AllOf;
using testing::HasSubstr;

uint thread_index() { return host::thread_ids().thread_index; }
uint lane() { return host::thread_ids().lane; }
uint* shared(size_t count, const char* name = "numbers") {
  return static_cast<uint*>(host::shared_memory(sizeof(uint), count, name));
}

class LanesTest : public testing::Test {
 protected:
  Fault run(uint32_t threads, const std::function<void()>& kernel, uint64_t seed = 1) {
    return runner_.run(kernel, threads, {0, 0, 0}, seed);
  }
  // After a fault the same fibers work again.
  void TearDown() override {
    std::vector<int> runs(256);
    for (int i = 1; i < 4; ++i) {
      const auto kernel = [&] {
        kernels::threadgroup_sync();
        runs[thread_index()] += static_cast<int>(kernels::simd_sum(1.0f));
      };
      EXPECT_EQ(run(256, kernel), "");
      EXPECT_EQ(runs, std::vector<int>(256, 32 * i));
    }
  }
  // Seeds of 1 to 20 for which the kernel leaves another result than `want`.
  int wrong_seeds(const std::function<void()>& kernel, const std::vector<uint>& result, const std::vector<uint>& want) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      EXPECT_EQ(run(static_cast<uint32_t>(want.size()), kernel, seed), "");
      wrong += result != want;
    }
    return wrong;
  }

  ThreadgroupRunner runner_;
};

TEST_F(LanesTest, WordsOfASimdgroup) {
  std::vector<uint> wrong(64);
  const auto kernel = [&] {
    const uint l = lane(), base = thread_index() - l;
    uint& bad = wrong[thread_index()];
    for (uint round = 0; round < 50; ++round) {
      bad += kernels::simd_shuffle(thread_index() + round, (l + 5) % 32) != base + (l + 5) % 32 + round;
      bad += kernels::simd_shuffle_xor(l, 9) != (l ^ 9);
      bad += kernels::simd_sum(float(l + round)) != float(496 + 32 * round);
      bad += kernels::simd_max(-float(l)) != 0.0f;
      bad += kernels::simd_max(l * 3) != 93;
      bad += kernels::simd_ballot(l % 2 == round % 2) != (round % 2 ? 0xaaaaaaaau : 0x55555555u);
    }
  };
  EXPECT_EQ(run(64, kernel), "");
  EXPECT_EQ(wrong, std::vector<uint>(64));
}

TEST_F(LanesTest, ThreadgroupMemoryIsNaNAtFirst) {
  for (int i = 0; i < 2; ++i) {
    int numbers = 0;
    const auto kernel = [&] {
      float* const values = static_cast<float*>(host::shared_memory(sizeof(float), 100, "values"));
      kernels::threadgroup_sync();
      for (uint k = 0; k < 100; ++k) numbers += thread_index() == 0 && !std::isnan(values[k]);
      kernels::threadgroup_sync();
      if (thread_index() == 0) std::fill_n(values, 100, 1.0f);
    };
    EXPECT_EQ(run(64, kernel), "");
    EXPECT_EQ(numbers, 0);
  }
}

TEST_F(LanesTest, ThreadsThatWaitForDifferentThings) {
  const Fault fault = run(64, [] {
    if (thread_index() < 40) kernels::threadgroup_sync();
    if (thread_index() >= 40 && thread_index() < 60) kernels::simd_sum(1.0f);
  });
  EXPECT_THAT(fault, AllOf(HasSubstr("40 wait at threadgroup_sync (thread 0)"),
                           HasSubstr("20 wait at simd_sum (thread 40)"), HasSubstr("4 have ended (thread 60)")));
}

TEST_F(LanesTest, LanesThatEndEarly) {
  const Fault fault = run(32, [] {
    if (lane() != 7) kernels::simd_sum(1.0f);
  });
  EXPECT_THAT(fault, AllOf(HasSubstr("31 wait at simd_sum (thread 0)"), HasSubstr("1 have ended (thread 7)")));
}

TEST_F(LanesTest, OperationsThatMeetOthers) {
  const Fault simd = run(32, [] { lane() == 3 ? kernels::simd_max(1.0f) : kernels::simd_sum(1.0f); });
  EXPECT_THAT(simd, AllOf(HasSubstr("simd_max"), HasSubstr("simd_sum"), HasSubstr("thread ")));
  const Fault group =
      run(64, [] { thread_index() < 32 ? kernels::threadgroup_sync() : kernels::threadgroup_device_sync(); });
  EXPECT_THAT(group, AllOf(HasSubstr("threadgroup_sync"), HasSubstr("threadgroup_device_sync")));
}

TEST_F(LanesTest, WritesAroundAnArrayOfTheThreadgroup) {
  EXPECT_EQ(run(32, [] { shared(6, "small")[5] = 1; }), "");
  EXPECT_EQ(run(32, [] { shared(6, "small")[6] = 1; }), "written past the end of small");
  EXPECT_EQ(run(32, [] { shared(6, "small")[-1] = 1; }), "written before the start of small");
  EXPECT_EQ(run(32, [] { shared(8, "first"), shared(8, "second")[8] = 1; }), "written past the end of second");
  EXPECT_THAT(run(32, [] { shared(8, "far")[1 << 20] = 1; }), HasSubstr("by thread "));
}

TEST_F(LanesTest, ArraysOfTheThreadgroup) {
  EXPECT_EQ(run(32, [] { shared(4096), shared(4096); }), "");
  EXPECT_EQ(run(32, [] { shared(4096), shared(4097); }), "more than 32768 bytes of threadgroup memory");
  EXPECT_THAT(run(32, [] { shared(8, lane() == 4 ? "one" : "other"); }), AllOf(HasSubstr("one"), HasSubstr("other")));
}

[[gnu::noinline]] void use_much_stack() {
  volatile char frame[150 << 10];
  for (size_t i = 0; i < sizeof frame; i += 16) frame[i] = 0;
}

TEST_F(LanesTest, AStackThatEnds) {
  const auto kernel = [](uint deep) {
    if (lane() == deep) use_much_stack();
  };
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_EQ(run(
                  32, [&] { kernel(31); }, seed),
              "the stack of thread 31 has ended");
    EXPECT_EQ(run(
                  32, [&] { kernel(0); }, seed),
              "access to memory that is not the kernel's by thread 0");
  }
}

// Each: right with all its barriers for every seed, wrong for some without one.
TEST_F(LanesTest, AMissingBarrierBetweenSimdgroups) {
  std::vector<uint> result(256), want(256);
  for (uint i = 0; i < 256; ++i) want[i] = 255 - i;
  const auto kernel = [&](bool barrier) {
    uint* const numbers = shared(256);
    numbers[thread_index()] = thread_index();
    if (barrier) kernels::threadgroup_sync();
    result[thread_index()] = numbers[255 - thread_index()];
  };
  EXPECT_EQ(wrong_seeds([&] { kernel(true); }, result, want), 0);
  EXPECT_GE(wrong_seeds([&] { kernel(false); }, result, want), 18);
}

TEST_F(LanesTest, AMissingBarrierBeforeMemoryIsWrittenAgain) {
  std::vector<uint> result(128), want(128);
  for (uint i = 0; i < 128; ++i) want[i] = (i + 32) % 128 * 10 + 45;
  const auto kernel = [&](bool barrier) {
    uint* const numbers = shared(128);
    result[thread_index()] = 0;
    for (uint round = 0; round < 10; ++round) {
      numbers[thread_index()] = thread_index() + round;
      kernels::threadgroup_sync();
      result[thread_index()] += numbers[(thread_index() + 32) % 128];
      if (barrier) kernels::threadgroup_sync();
    }
  };
  EXPECT_EQ(wrong_seeds([&] { kernel(true); }, result, want), 0);
  EXPECT_GE(wrong_seeds([&] { kernel(false); }, result, want), 18);
}

// The order of the lanes is another after each meeting: one that relies on the lane before, or on the first one, fails late.
TEST_F(LanesTest, AMissingBarrierInASimdgroup) {
  std::vector<uint> result(32), want(32, 1);
  for (const uint distance : {1u, 16u, 31u}) {
    const auto kernel = [&](bool barrier) {
      uint* const numbers = shared(32);
      for (uint i = 0; i < 3; ++i) kernels::simdgroup_sync();
      numbers[lane()] = 1;
      if (barrier) kernels::simdgroup_sync();
      result[lane()] = numbers[(lane() + distance) % 32];
    };
    EXPECT_EQ(wrong_seeds([&] { kernel(true); }, result, want), 0);
    EXPECT_GE(wrong_seeds([&] { kernel(false); }, result, want), 18);
  }
  int first = 0;  // how often lane 0 was the last one, which finds all of the others' numbers
  const auto last = [&] {
    uint* const numbers = shared(1);
    if (lane() == 31) *numbers = 0;
    kernels::simdgroup_sync();
    const uint before = (*numbers)++;
    first += lane() == 0 && before == 31;
  };
  for (uint64_t seed = 1; seed <= 320; ++seed) EXPECT_EQ(run(32, last, seed), "");
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 40);  // 10 expected
}

// y [256] = x [256] + 1, by 8 threadgroups.
void increment(void* const* buffers, const void*) {
  const uint i = host::thread_ids().group.x * 32 + thread_index();
  static_cast<uint*>(buffers[1])[i] = static_cast<const uint*>(buffers[0])[i] + 1;
}
// Thread 9 of threadgroup 5 reads, or writes, element number x[0] of buffer 1.
void read_at(void* const* buffers, const void*) {
  if (host::thread_ids().group.x != 5 || thread_index() != 9) return;
  const int i = *static_cast<const int*>(buffers[0]);
  static_cast<volatile uint*>(buffers[2])[0] = static_cast<uint*>(buffers[1])[i];
}
void write_at(void* const* buffers, const void*) {
  if (host::thread_ids().group.x != 5 || thread_index() != 9) return;
  static_cast<volatile uint*>(buffers[1])[*static_cast<const int*>(buffers[0])] = 1;
}

constexpr KernelEntry table[] = {{{"increment", 32, "rw", 0}, increment},
                                 {{"read_at", 32, "rrw", 0}, read_at},
                                 {{"write_at", 32, "rwr", 0}, write_at},
                                 {{"write_read", 32, "rrw", 0}, write_at}};
enum { kernel_increment, kernel_read_at, kernel_write_at, kernel_write_read };

class EmulatorTest : public testing::Test {
 protected:
  void open(const gpu::EmulatorOptions& options) {
    buffers_.clear();
    gpu::EmulatorOptions with_table = options;
    with_table.kernels = table;
    device_ = gpu::make_emulator(with_table);
    for (const size_t count : {256, 251, 256}) {
      buffers_.push_back(device_->allocate(count * sizeof(uint)).value());
    }
    set(0, 0);
  }
  uint* data(int buffer) { return reinterpret_cast<uint*>(buffers_[buffer]->host()); }
  void set(int buffer, uint first) {
    for (uint i = 0; i < buffers_[buffer]->bytes() / 4; ++i) data(buffer)[i] = first + i;
  }
  Dispatch dispatch(int kernel, std::vector<int> buffers, bool barrier = false) {
    Dispatch made{.kernel = kernel, .groups = {8, 1, 1}, .barrier = barrier};
    for (const int i : buffers) made.buffers.push_back({buffers_[i].get(), 0, buffers_[i]->bytes()});
    return made;
  }
  // What the emulator says of an access to that element; the next dispatch works.
  std::string fault(int kernel, int element) {
    data(0)[0] = static_cast<uint>(element);
    const Result<void> done = device_->submit(std::array{dispatch(kernel, {0, 1, 2})});
    set(0, 0);
    const Result<void> next = device_->submit(std::array{dispatch(kernel_increment, {0, 2})});
    EXPECT_TRUE(next) << next.error().message();
    for (uint i = 0; i < 256; ++i) EXPECT_EQ(data(2)[i], i + 1);
    return done ? "" : done.error().message();
  }

  std::unique_ptr<gpu::Device> device_;
  std::vector<std::unique_ptr<gpu::Buffer>> buffers_;
};

TEST_F(EmulatorTest, NewMemoryIsNaN) {
  open({});
  for (uint i = 0; i < 251; ++i) ASSERT_EQ(data(1)[i], 0xffffffffu);
}

// 251 elements end 4 bytes before an inaccessible page.
TEST_F(EmulatorTest, AccessesOutsideOfABuffer) {
  open({.threads = 2});
  const std::string place = " by thread 9 in threadgroup 5, 0, 0";
  for (const int kernel : {kernel_read_at, kernel_write_at}) {
    const std::string name = kernel == kernel_read_at ? "read_at: " : "write_at: ";
    EXPECT_EQ(fault(kernel, 250), "");
    EXPECT_EQ(fault(kernel, 252), name + "access 4 bytes past the end of buffer 1 (of 1004 bytes)" + place);
    EXPECT_EQ(fault(kernel, 1251), name + "access 4000 bytes past the end of buffer 1 (of 1004 bytes)" + place);
    EXPECT_EQ(fault(kernel, -1000000),
              name + "access 4000000 bytes before the start of buffer 1 (of 1004 bytes)" + place);
  }
  EXPECT_EQ(fault(kernel_write_at, 251), "write_at: written past the end of buffer 1");
  EXPECT_EQ(fault(kernel_write_at, -1), "write_at: written before the start of buffer 1");
  EXPECT_EQ(fault(kernel_write_at, 0), "");
}

TEST_F(EmulatorTest, WritesToWhatIsOnlyRead) {
  open({});
  EXPECT_EQ(fault(kernel_write_read, 3),
            "write_read: write to buffer 1 (of 1004 bytes), which it only reads by thread 9 in threadgroup 5, 0, 0");
  EXPECT_EQ(fault(kernel_write_at, 3), "");
  open({.strict = false});
  EXPECT_EQ(fault(kernel_write_read, 3), "");
  EXPECT_THAT(fault(kernel_write_read, 252), HasSubstr("4 bytes past the end of buffer 1"));
}

TEST_F(EmulatorTest, AMissingBarrierBetweenDispatches) {
  for (const bool barrier : {true, false}) {
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 16; ++seed) {
      open({.threads = 1, .seed = seed});
      ASSERT_TRUE(
          device_->submit(std::array{dispatch(kernel_increment, {0, 2}), dispatch(kernel_increment, {2, 0}, barrier)}));
      wrong += data(0)[200] != 202;
    }
    EXPECT_EQ(wrong > 0, !barrier) << wrong;
    EXPECT_LT(wrong, 16);
  }
}

// A fault outside of kernels is nobody's but the handler's that was there before.
TEST(EmulatorDeathTest, OtherFaultsGoToTheHandlerBefore) {
  const auto crash = [] {
    struct sigaction action = {};
    action.sa_handler = [](int) { ::_exit(17); };
    ::sigaction(SIGSEGV, &action, nullptr);
    ::sigaction(SIGBUS, &action, nullptr);
    ThreadgroupRunner runner;
    runner.run([] {}, 32, {0, 0, 0}, 1);
    const gpu::emulator::GuardedMemory memory(16);
    static_cast<volatile std::byte*>(memory.data())[16] = std::byte{1};
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(crash(), testing::ExitedWithCode(17), "");
}

}  // namespace
}  // namespace lily
