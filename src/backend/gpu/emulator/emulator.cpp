#include "backend/gpu/emulator/emulator.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <functional>
#include <mutex>
#include <numeric>

#include "backend/gpu/emulator/guarded_memory.h"
#include "backend/gpu/emulator/lanes.h"
#include "base/thread_pool.h"

namespace lily::gpu {
namespace {

using emulator::Fault;
using emulator::GuardedMemory;

class EmulatorBuffer : public Buffer {
 public:
  explicit EmulatorBuffer(std::unique_ptr<GuardedMemory> memory)
      : Buffer(memory->bytes(), memory->data()), memory_(std::move(memory)) {}

  GuardedMemory& memory() const { return *memory_; }

 private:
  std::unique_ptr<GuardedMemory> memory_;
};

GuardedMemory& memory_of(const BufferView& view) { return static_cast<const EmulatorBuffer*>(view.buffer)->memory(); }

// The memory that no buffer of this dispatch may write.
std::vector<GuardedMemory*> only_read(const Dispatch& dispatch, const kernels::KernelInfo& info) {
  std::vector<GuardedMemory*> memories;
  const auto reads = [&](size_t i) { return info.accesses[i] == 'r' || info.accesses[i] == 'e'; };
  for (size_t i = 0; i < dispatch.buffers.size(); ++i) {
    if (reads(i)) memories.push_back(&memory_of(dispatch.buffers[i]));
  }
  for (size_t i = 0; i < dispatch.buffers.size(); ++i) {
    if (!reads(i)) std::erase(memories, &memory_of(dispatch.buffers[i]));
  }
  return memories;
}

// Where an access that failed would have been, seen from the nearest buffer.
std::string explain_address(const Dispatch& dispatch, const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::string text = "access to memory of no buffer";
  uintptr_t nearest = UINTPTR_MAX;
  for (size_t i = 0; i < dispatch.buffers.size(); ++i) {
    const BufferView& view = dispatch.buffers[i];
    const auto start = reinterpret_cast<uintptr_t>(view.buffer->host()) + view.offset, end = start + view.bytes;
    const bool before = at < start, after = at >= end;
    const uintptr_t distance = before ? start - at : after ? at - end : 0;
    if (distance >= nearest) continue;
    nearest = distance;
    const std::string name = "buffer " + std::to_string(i) + " (of " + std::to_string(view.bytes) + " bytes)";
    if (before) {
      text = "access " + std::to_string(distance) + " bytes before the start of " + name;
    } else if (after) {
      text = "access " + std::to_string(distance) + " bytes past the end of " + name;
    } else {
      text = "write to " + name + ", which it only reads";
    }
  }
  return text;
}

struct EmulatorRecording : Recording {
  std::vector<Dispatch> list;
};

class Emulator : public Device {
 public:
  explicit Emulator(const EmulatorOptions& options)
      : kernels_(options.kernels.empty() ? emulator::kernel_table() : options.kernels),
        strict_(options.strict),
        pool_(options.threads),
        random_(options.seed * 0x9e3779b97f4a7c15ull),
        runners_(static_cast<size_t>(pool_.threads())) {
    traits_.name = "emulator";
    traits_.memory = size_t{4} << 30;
    traits_.unified_memory = true;
  }

  const DeviceTraits& traits() const override { return traits_; }

  Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override {
    auto memory = std::make_unique<GuardedMemory>(bytes);
    if (!memory->data()) {
      return Error{
          .where = "emulator", .what = "out of memory", .got = std::to_string(bytes) + " bytes", .exit_code = 1};
    }
    return std::unique_ptr<Buffer>(std::make_unique<EmulatorBuffer>(std::move(memory)));
  }
  Result<std::unique_ptr<Buffer>> allocate_visible(size_t bytes) override { return allocate(bytes); }

  Result<void> upload(const BufferView& to, std::span<const std::byte> from) override {
    std::copy(from.begin(), from.end(), at(to));
    return {};
  }
  Result<void> download(const BufferView& from, std::span<std::byte> to) override {
    std::copy_n(at(from), to.size(), to.begin());
    return {};
  }
  Result<void> copy(const BufferView& from, const BufferView& to) override {
    std::copy_n(at(from), from.bytes, at(to));
    return {};
  }
  Result<void> fill_zero(const BufferView& view) override {
    std::fill_n(at(view), view.bytes, std::byte{0});
    return {};
  }

  Result<std::unique_ptr<Recording>> record(std::vector<Dispatch> list) override {
    auto recording = std::make_unique<EmulatorRecording>();
    recording->list = std::move(list);
    return std::unique_ptr<Recording>(std::move(recording));
  }
  Result<void> submit(const Recording& recording) override {
    return submit(std::span<const Dispatch>(static_cast<const EmulatorRecording&>(recording).list));
  }

  // Dispatches between two barriers run in any order.
  Result<void> submit(std::span<const Dispatch> list) override {
    for (size_t first = 0; first < list.size();) {
      size_t end = first + 1;
      while (end < list.size() && !list[end].barrier) ++end;
      std::vector<size_t> order(end - first);
      std::iota(order.begin(), order.end(), first);
      shuffle(order);
      for (const size_t i : order) LILY_CHECK(run(list[i]));
      first = end;
    }
    return {};
  }
  Result<void> wait() override { return {}; }
  Result<uint64_t> mark() override { return uint64_t{0}; }
  Result<void> wait_for(uint64_t) override { return {}; }

 private:
  static std::byte* at(const BufferView& view) {
    assert(view.offset + view.bytes <= view.buffer->bytes());
    return view.buffer->host() + view.offset;
  }

  uint64_t next_random() {
    random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
    return random_ >> 33;
  }
  template <class T>
  void shuffle(std::vector<T>& v) {
    for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[next_random() % i]);
  }

  Result<void> run(const Dispatch& dispatch) {
    assert(static_cast<size_t>(dispatch.kernel) < kernels_.size());
    const emulator::KernelEntry& kernel = kernels_[dispatch.kernel];
    assert(dispatch.buffers.size() == kernel.info.accesses.size() && dispatch.args.size() == kernel.info.args_bytes);
    const std::vector<GuardedMemory*> read_only =
        strict_ ? only_read(dispatch, kernel.info) : std::vector<GuardedMemory*>();
    for (GuardedMemory* memory : read_only) memory->set_writable(false);
    Fault fault = run_threadgroups(dispatch, kernel);
    for (GuardedMemory* memory : read_only) memory->set_writable(true);
    for (size_t i = 0; i < dispatch.buffers.size(); ++i) {
      GuardedMemory& memory = memory_of(dispatch.buffers[i]);
      const bool before = memory.check_before(), after = memory.check_after();
      if (!fault.empty() || (before && after)) continue;
      fault = (before ? "written past the end of buffer " : "written before the start of buffer ") + std::to_string(i);
    }
    if (fault.empty()) return {};
    return Error{.where = std::string(kernel.info.name), .what = fault, .exit_code = 1};
  }

  // Threadgroups run in any order; the fault of the first that had one.
  Fault run_threadgroups(const Dispatch& dispatch, const emulator::KernelEntry& kernel) {
    std::vector<void*> buffers;
    for (const BufferView& view : dispatch.buffers) buffers.push_back(at(view));
    const uint32_t x = dispatch.groups[0], y = dispatch.groups[1], z = dispatch.groups[2];
    std::vector<uint32_t> order(size_t{x} * y * z);
    std::iota(order.begin(), order.end(), 0u);
    shuffle(order);
    const std::function<void()> thread = [&] { kernel.run(buffers.data(), dispatch.args.data()); };
    const emulator::ExplainAddress explain = [&](const void* address) { return explain_address(dispatch, address); };
    const uint64_t seed = next_random();
    std::mutex mutex;
    Fault fault;
    std::atomic<bool> failed = false;
    pool_.parallel_for(static_cast<int64_t>(order.size()), [&](int64_t i, int worker) {
      if (failed) return;
      const uint32_t index = order[i];
      const std::array<uint32_t, 3> group = {index % x, index / x % y, index / x / y};
      const Fault here = runners_[worker].run(thread, kernel.info.threads, group, seed + index, explain);
      if (here.empty()) return;
      const std::lock_guard lock(mutex);
      if (failed.exchange(true)) return;
      fault = here + " in threadgroup " + std::to_string(group[0]) + ", " + std::to_string(group[1]) + ", " +
              std::to_string(group[2]);
    });
    return fault;
  }

  std::span<const emulator::KernelEntry> kernels_;
  bool strict_;
  DeviceTraits traits_;
  ThreadPool pool_;
  uint64_t random_;
  std::vector<emulator::ThreadgroupRunner> runners_;
};

}  // namespace

std::unique_ptr<Device> make_emulator(const EmulatorOptions& options) { return std::make_unique<Emulator>(options); }

}  // namespace lily::gpu
