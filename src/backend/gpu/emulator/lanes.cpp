// A jump to another stack is what __longjmp_chk takes for an overrun.
#undef _FORTIFY_SOURCE
#ifdef __APPLE__
#define _XOPEN_SOURCE 700  // ucontext.h has its functions only so
#define _DARWIN_C_SOURCE
#endif

#include "backend/gpu/emulator/lanes.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <bit>
#include <cassert>
#include <csetjmp>
#include <cstring>
#include <map>
#include <vector>

#include "backend/gpu/emulator/guarded_memory.h"
#include "kernels/dialect/host.h"

#ifdef __APPLE__
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace lily::gpu::emulator {
namespace {

// The threads of a simdgroup have their stacks in one mapping, which starts with pages without rights. Stacks that lie a power of two apart would share the same few lines of the caches.
constexpr size_t stack_bytes = 128 * 1024, stack_stride = stack_bytes + 1088, first_stack = 64 * 1024;
constexpr size_t guard_bytes = 64;  // before, between and after the arrays in threadgroup memory, with a pattern
constexpr size_t max_arrays = 64;
constexpr int poison = 0xff, canary = 0xa5;  // 0xff: NaN in every float type
constexpr uint64_t stack_end = 0xa5a5a5a5a5a5a5a5ull;

// How a run of a threadgroup ended, as its scheduler is told by _longjmp.
enum Ending { nobody_ready = 1, faulted = 2, memory_fault = MemoryTrap::sprung };

struct Fiber {
  host::ThreadIds ids;
  jmp_buf context;
  bool parked = false;          // its context is there, and waits for a kernel to run
  const char* waits = nullptr;  // at which meeting
  uint32_t next_array = 0;      // of threadgroup memory
};

struct Simdgroup {
  uint8_t ready[32];  // lanes that can go on, the first ready_count
  uint32_t ready_count = 0;
  uint32_t arrived = 0;  // at the meeting
  const char* meeting = nullptr;
  uint32_t parity = 0;       // of the meeting's number
  host::Meeting brought[2];  // to this meeting and the one before, which slow lanes may still read
};

struct SharedArray {
  size_t offset, bytes;  // the next pattern starts at their end, though the next array at a multiple of 16
  const char* name;
};

bool same(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

}  // namespace

struct ThreadgroupRunner::Threadgroup {
  MemoryTrap scheduler;  // where fibers return to
  std::vector<Fiber> fibers;
  std::vector<std::byte*> stacks;  // [simdgroups], of its 32 lanes
  std::vector<Simdgroup> simdgroups;
  std::vector<SharedArray> arrays;
  GuardedMemory memory{threadgroup_bytes + (max_arrays + 1) * guard_bytes};
  size_t memory_end = 0, used = 0;

  const std::function<void()>* kernel = nullptr;
  Fiber* current = nullptr;
  uint32_t threads = 0, ended = 0;
  uint32_t arrived = 0;  // at the threadgroup's meeting
  const char* meeting = nullptr;
  uint32_t active = 0;          // simdgroups with lanes that can go on, a bit each
  uint32_t simdgroup = 0;       // that goes on
  uint32_t switch_percent = 0;  // how often another simdgroup goes on though this one could
  uint64_t random = 0;
  Fault fault;

  ~Threadgroup() {
    for (std::byte* stack : stacks) ::munmap(stack - first_stack, first_stack + 32 * stack_stride);
  }

  std::byte* stack(size_t index) const { return stacks[index / 32] + index % 32 * stack_stride; }
  bool create_fibers();
  void create(size_t index);
  void start(std::array<uint32_t, 3> group, uint64_t seed);

  uint32_t below(uint32_t n) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<uint32_t>((random >> 32) * n >> 32);
  }

  void make_ready(uint32_t s) {
    for (uint8_t i = 0; i < 32; ++i) simdgroups[s].ready[i] = i;
    simdgroups[s].ready_count = 32;
    active |= 1u << s;
  }

  // Chooses a fiber that can go on, at random, and returns where it does; the scheduler where there is none. A simdgroup mostly
  // goes on as far as it can: what differs between threads that keep step and those that run ahead is what a missing barrier
  // shows by.
  //
  // `if (_setjmp(self.context) == 0) _longjmp(r.next(), nobody_ready);` is how a fiber waits: not in a function of its own,
  // since each return after a jump is one that the processor does not foresee.
  jmp_buf& next() {
    if (!active) return scheduler.place;
    if (!(active >> simdgroup & 1) || (switch_percent && below(100) < switch_percent)) {
      const uint32_t turn = below(32);
      simdgroup = (static_cast<uint32_t>(std::countr_zero(std::rotr(active, static_cast<int>(turn)))) + turn) % 32;
    }
    Simdgroup& s = simdgroups[simdgroup];
    const uint32_t i = below(s.ready_count);
    const uint32_t lane = s.ready[i];
    s.ready[i] = s.ready[--s.ready_count];
    if (s.ready_count == 0) active &= ~(1u << simdgroup);
    current = &fibers[simdgroup * 32 + lane];
    return current->context;
  }

  [[noreturn]] void fail(Fault what) {
    fault = std::move(what);
    _longjmp(scheduler.place, faulted);
  }

  Fault stuck() const;
  Fault check_arrays();
};

namespace {

// The address of a thread's variable may be kept across a jump: no function reads this twice with a yield between.
thread_local ThreadgroupRunner::Threadgroup* running = nullptr;

std::string name_of(const Fiber& fiber) { return "thread " + std::to_string(fiber.ids.thread_index); }

void fiber_main() {
  auto& r = *running;
  Fiber& self = *r.current;
  const uint64_t* const end_of_stack = reinterpret_cast<const uint64_t*>(r.stack(self.ids.thread_index));
  self.parked = true;
  if (_setjmp(self.context) == 0) _longjmp(r.scheduler.place, nobody_ready);
  for (;;) {
    self.parked = false;
    (*r.kernel)();
    if (*end_of_stack != stack_end) r.fail("the stack of " + name_of(self) + " has ended");
    self.parked = true;
    self.waits = nullptr;
    ++r.ended;
    if (_setjmp(self.context) == 0) _longjmp(r.next(), nobody_ready);
  }
}

}  // namespace

// The new fiber runs until it is parked.
void ThreadgroupRunner::Threadgroup::create(size_t index) {
  if (fibers[index].parked) return;
  current = &fibers[index];
  current->ids.thread_index = static_cast<uint32_t>(index);
  std::memcpy(stack(index), &stack_end, sizeof stack_end);
  ucontext_t context;
  ::getcontext(&context);
  context.uc_stack.ss_sp = stack(index);
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  ::makecontext(&context, fiber_main, 0);
  if (_setjmp(scheduler.place) == 0) ::setcontext(&context);
}

// All that this kernel needs and that are not there from the one before; false: no memory for their stacks.
bool ThreadgroupRunner::Threadgroup::create_fibers() {
  fibers.reserve(1024);  // they never move: parked ones know where they are
  if (fibers.size() < threads) fibers.resize(threads);
  while (stacks.size() < threads / 32) {
    void* const made =
        ::mmap(nullptr, first_stack + 32 * stack_stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (made == MAP_FAILED) return false;
    ::mprotect(made, first_stack, PROT_NONE);
    stacks.push_back(static_cast<std::byte*>(made) + first_stack);
  }
  for (size_t i = 0; i < threads; ++i) create(i);
  return true;
}

void ThreadgroupRunner::Threadgroup::start(std::array<uint32_t, 3> group, uint64_t seed) {
  fault.clear();
  arrays.clear();
  used = 0;
  memory_end = guard_bytes;
  std::memset(memory.data(), canary, guard_bytes);
  arrived = ended = active = simdgroup = 0;
  if (simdgroups.size() < threads / 32) simdgroups.resize(threads / 32);
  for (uint32_t s = 0; s < threads / 32; ++s) {
    simdgroups[s].arrived = 0;
    make_ready(s);
  }
  for (uint32_t i = 0; i < threads; ++i) {
    fibers[i].ids = {i % 32, i / 32, i, {group[0], group[1], group[2]}};
    fibers[i].next_array = 0;
  }
  random = (seed + 1) * 0x9e3779b97f4a7c15ull;
  random ^= random >> 29;
  constexpr uint32_t percents[] = {0, 3, 50, 0};
  switch_percent = percents[below(4)];
  simdgroup = below(threads / 32);
}

// One thread of each kind of waiting, and how many they are.
Fault ThreadgroupRunner::Threadgroup::stuck() const {
  std::map<std::string, std::pair<uint32_t, uint32_t>> kinds;  // first thread, count
  for (uint32_t i = 0; i < threads; ++i) {
    const Fiber& fiber = fibers[i];
    ++kinds.try_emplace(fiber.parked ? "have ended" : std::string("wait at ") + fiber.waits, i, 0u)
          .first->second.second;
  }
  Fault text = "threads wait for others in vain:";
  const char* separator = " ";
  for (const auto& [kind, who] : kinds) {
    text += separator + std::to_string(who.second) + " " + kind + " (thread " + std::to_string(who.first) + ")";
    separator = ", ";
  }
  return text;
}

Fault ThreadgroupRunner::Threadgroup::check_arrays() {
  const auto whole = [&](size_t offset) {
    for (size_t i = 0; i < guard_bytes; ++i) {
      if (memory.data()[offset + i] != std::byte{canary}) return false;
    }
    return true;
  };
  for (const SharedArray& array : arrays) {
    if (!whole(array.offset - guard_bytes) && &array == arrays.data()) {
      return std::string("written before the start of ") + array.name;
    }
    if (!whole(array.offset + array.bytes)) return std::string("written past the end of ") + array.name;
  }
  return {};
}

ThreadgroupRunner::ThreadgroupRunner() : threadgroup_(std::make_unique<Threadgroup>()) {}
ThreadgroupRunner::~ThreadgroupRunner() = default;

Fault ThreadgroupRunner::run(const std::function<void()>& kernel, uint32_t threads, std::array<uint32_t, 3> group,
                             uint64_t seed, const ExplainAddress& explain) {
  assert(threads > 0 && threads % 32 == 0 && threads <= 1024);
  Threadgroup& r = *threadgroup_;
  r.kernel = &kernel;
  r.threads = threads;
  running = &r;
  if (!r.memory.data() || !r.create_fibers()) {
    running = nullptr;
    return "the emulator is out of memory";
  }
  r.start(group, seed);
  set_memory_trap(&r.scheduler);
  const int ending = _setjmp(r.scheduler.place);
  if (ending == 0) _longjmp(r.next(), nobody_ready);
  set_memory_trap(nullptr);
  running = nullptr;
  if (ending != nobody_ready) {
    for (Fiber& fiber : r.fibers) fiber.parked = false;  // who knows what is on their stacks
  }
  if (ending == faulted) return r.fault;
  if (ending == memory_fault) {
    return (explain ? explain(r.scheduler.address) : "access to memory that is not the kernel's") + " by " +
           name_of(*r.current);
  }
  return r.ended == threads ? r.check_arrays() : r.stuck();
}

}  // namespace lily::gpu::emulator

namespace lily::host {

using namespace gpu::emulator;

const ThreadIds& thread_ids() { return running->current->ids; }

void* shared_memory(size_t size, size_t count, const char* name) {
  auto& r = *running;
  const size_t index = r.current->next_array++, bytes = size * count, rounded = (bytes + 15) / 16 * 16;
  if (index == r.arrays.size()) {
    r.used += rounded;
    if (r.used > threadgroup_bytes) r.fail("more than 32768 bytes of threadgroup memory");
    if (index == max_arrays) r.fail("more than 64 arrays in threadgroup memory");
    r.arrays.push_back({r.memory_end, bytes, name});
    std::memset(r.memory.data() + r.memory_end, poison, bytes);
    std::memset(r.memory.data() + r.memory_end + bytes, canary, rounded - bytes + guard_bytes);
    r.memory_end += rounded + guard_bytes;
  }
  const SharedArray& array = r.arrays[index];
  if (array.bytes != bytes || !same(array.name, name)) {
    r.fail(name_of(*r.current) + " declares " + name + " in threadgroup memory where others declare " + array.name);
  }
  return r.memory.data() + array.offset;
}

void meet_threadgroup(const char* name) {
  auto& r = *running;
  Fiber& self = *r.current;
  if (r.arrived == 0) r.meeting = name;
  if (!same(r.meeting, name)) r.fail(name_of(self) + " comes to " + name + " while others wait at " + r.meeting);
  self.waits = name;
  if (++r.arrived == r.threads) {
    r.arrived = 0;
    for (uint32_t s = 0; s < r.threads / 32; ++s) r.make_ready(s);
  }
  if (_setjmp(self.context) == 0) _longjmp(r.next(), nobody_ready);
}

// The last lane to come makes all ready.
const Meeting& meet_simdgroup(uint value, const char* name, Reduction reduction) {
  auto& r = *running;
  Fiber& self = *r.current;
  Simdgroup& simdgroup = r.simdgroups[self.ids.simdgroup];
  if (simdgroup.arrived == 0) simdgroup.meeting = name;
  if (!same(simdgroup.meeting, name)) {
    r.fail(name_of(self) + " comes to " + name + " while others of its simdgroup wait at " + simdgroup.meeting);
  }
  Meeting& meeting = simdgroup.brought[simdgroup.parity];
  meeting.values[self.ids.lane] = value;
  self.waits = name;
  if (++simdgroup.arrived == 32) {
    if (reduction) meeting.result = reduction(meeting.values);
    simdgroup.arrived = 0;
    simdgroup.parity = 1 - simdgroup.parity;
    r.make_ready(self.ids.simdgroup);
  }
  if (_setjmp(self.context) == 0) _longjmp(r.next(), nobody_ready);
  return meeting;
}

}  // namespace lily::host
