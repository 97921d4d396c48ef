#include "backend/gpu/emulator/lanes.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <csetjmp>
#include <cstring>
#include <vector>

#include "kernels/dialect/host.h"

namespace lily::gpu::emulator {
namespace {

constexpr size_t stack_bytes = 128 * 1024;
constexpr size_t guard_bytes = 64;      // after each array in threadgroup memory, with a pattern
constexpr unsigned char poison = 0xff;  // NaN in every float type
constexpr unsigned char canary = 0xa5;

enum class Waits { no, simdgroup, threadgroup };

struct Fiber {
  host::ThreadIds ids;
  jmp_buf context;
  bool started = false, ended = false;
  Waits waits = Waits::no;
  uint32_t value = 0;     // brought to the simdgroup's meeting
  size_t next_array = 0;  // of threadgroup memory
};

struct Simdgroup {
  int arrived = 0;
  uint32_t values[2][32];  // of this meeting and the one before, which slow lanes may still read
  int meeting = 0;
};

struct SharedArray {
  size_t offset, bytes;
  const char* name;
};

}  // namespace

struct ThreadgroupRunner::Threadgroup {
  std::vector<Fiber> fibers;
  std::vector<Simdgroup> simdgroups;
  std::vector<SharedArray> arrays;
  alignas(16) unsigned char memory[threadgroup_bytes + 64 * guard_bytes];
  size_t memory_end = 0, used = 0;
  std::vector<std::byte*> stacks;
  std::vector<uint32_t> ready;
  Fiber* current = nullptr;
  int arrived = 0;  // at the threadgroup's meeting
  jmp_buf scheduler;
  ucontext_t scheduler_context;
  const std::function<void()>* kernel = nullptr;
  Fault fault;

  ~Threadgroup() {
    for (std::byte* stack : stacks) ::munmap(stack, stack_bytes);
  }

  void start(Fiber& fiber, size_t index);
  void yield() {
    if (_setjmp(current->context) == 0) _longjmp(scheduler, 1);
  }
};

namespace {

thread_local ThreadgroupRunner::Threadgroup* running = nullptr;

void fiber_main() {
  (*running->kernel)();
  running->current->ended = true;
  _longjmp(running->scheduler, 1);
}

}  // namespace

void ThreadgroupRunner::Threadgroup::start(Fiber& fiber, size_t index) {
  while (stacks.size() <= index) {
    stacks.push_back(static_cast<std::byte*>(
        ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)));
  }
  fiber.started = true;
  ucontext_t context;
  ::getcontext(&context);
  context.uc_stack.ss_sp = stacks[index];
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  ::makecontext(&context, fiber_main, 0);
  ::setcontext(&context);
}

ThreadgroupRunner::ThreadgroupRunner() : threadgroup_(std::make_unique<Threadgroup>()) {}
ThreadgroupRunner::~ThreadgroupRunner() = default;

Fault ThreadgroupRunner::run(const std::function<void()>& kernel, uint32_t threads, std::array<uint32_t, 3> group,
                             uint64_t seed) {
  Threadgroup& r = *threadgroup_;
  r.kernel = &kernel;
  r.fault.clear();
  r.fibers.assign(threads, {});
  r.simdgroups.assign(threads / 32, {});
  r.arrays.clear();
  r.used = r.memory_end = 0;
  r.arrived = 0;
  r.ready.clear();
  std::memset(r.memory, poison, sizeof r.memory);
  for (uint32_t i = 0; i < threads; ++i) {
    r.fibers[i].ids = {i % 32, i / 32, i, {group[0], group[1], group[2]}};
    r.ready.push_back(i);
  }
  for (uint32_t i = threads - 1; i > 0; --i) {  // who goes first
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(r.ready[i], r.ready[(seed >> 33) % (i + 1)]);
  }
  running = &r;
  volatile size_t next = 0;
  volatile uint32_t ended = 0;
  while (next < r.ready.size() && r.fault.empty()) {
    const uint32_t index = r.ready[next];
    next = next + 1;
    r.current = &r.fibers[index];
    if (_setjmp(r.scheduler) == 0) {
      if (r.current->started) _longjmp(r.current->context, 1);
      r.start(*r.current, index);
    }
    if (r.current->ended) ended = ended + 1;
    if (next > 4096) {
      r.ready.erase(r.ready.begin(), r.ready.begin() + static_cast<std::ptrdiff_t>(next));
      next = 0;
    }
  }
  running = nullptr;
  if (!r.fault.empty()) return r.fault;
  if (ended != threads) return "threads wait for others that have ended or wait elsewhere";
  for (const SharedArray& array : r.arrays) {
    for (size_t i = 0; i < guard_bytes; ++i) {
      if (r.memory[array.offset + array.bytes + i] != canary)
        return std::string("written past the end of ") + array.name;
    }
  }
  return {};
}

}  // namespace lily::gpu::emulator

namespace lily::host {

using namespace gpu::emulator;

const ThreadIds& thread_ids() { return running->current->ids; }

void* shared_memory(size_t size, size_t count, const char* name) {
  auto& r = *running;
  const size_t index = r.current->next_array++, bytes = (size * count + 15) / 16 * 16;
  if (index == r.arrays.size()) {
    r.used += bytes;
    if (r.used > threadgroup_bytes) r.fault = "more than 32768 bytes of threadgroup memory";
    if (r.memory_end + bytes + guard_bytes > sizeof r.memory) {
      r.fault = "too much threadgroup memory";
      r.yield();
    }
    r.arrays.push_back({r.memory_end, bytes, name});
    std::memset(r.memory + r.memory_end + bytes, canary, guard_bytes);
    r.memory_end += bytes + guard_bytes;
  }
  return r.memory + r.arrays[index].offset;
}

void meet_threadgroup() {
  auto& r = *running;
  Fiber& self = *r.current;
  self.waits = Waits::threadgroup;
  if (++r.arrived < static_cast<int>(r.fibers.size())) {
    r.yield();
    return;
  }
  r.arrived = 0;
  for (Fiber& fiber : r.fibers) {
    fiber.waits = Waits::no;
    if (&fiber != &self) r.ready.push_back(fiber.ids.thread_index);
  }
}

namespace {

// Waits for the simdgroup's other lanes; returns the values that all of them brought.
const uint32_t* meet(uint32_t value) {
  auto& r = *running;
  Fiber& self = *r.current;
  Simdgroup& simdgroup = r.simdgroups[self.ids.simdgroup];
  const int meeting = simdgroup.meeting;
  simdgroup.values[meeting][self.ids.lane] = value;
  self.waits = Waits::simdgroup;
  if (++simdgroup.arrived < 32) {
    r.yield();
  } else {
    simdgroup.arrived = 0;
    simdgroup.meeting = 1 - meeting;
    for (uint32_t i = 0; i < 32; ++i) {
      Fiber& fiber = r.fibers[self.ids.simdgroup * 32 + i];
      fiber.waits = Waits::no;
      if (&fiber != &self) r.ready.push_back(fiber.ids.thread_index);
    }
  }
  return simdgroup.values[meeting];
}

}  // namespace

void meet_simdgroup() { meet(0); }
uint exchange(uint value, uint from) { return meet(value)[from % 32]; }
void gather(uint value, uint (&all)[32]) { std::memcpy(all, meet(value), sizeof all); }

}  // namespace lily::host
