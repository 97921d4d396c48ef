// Sequences on a device: KV blocks of one pool, and recurrent state twice, so that a step can be taken back.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/gpu/device.h"
#include "base/memory_meter.h"

namespace lily::gpu {

// KV of all full-attention layers in blocks of kernels::kv_block_tokens tokens; kernels/args.h has the layout.
class KvPool {
 public:
  static Result<std::unique_ptr<KvPool>> create(Device& device, const ModelConfig& config, size_t blocks);

  // A block's place in the pool, given back with the last copy of the pointer.
  using Block = std::shared_ptr<const uint32_t>;
  Result<Block> take();

  BufferView view() const { return {buffer_.get(), 0, buffer_->bytes()}; }
  BufferView view(uint32_t block) const { return view().part(block * block_bytes_, block_bytes_); }
  static size_t block_bytes(const ModelConfig& config);
  size_t block_bytes() const { return block_bytes_; }
  size_t bytes_in_use() const;

 private:
  struct FreeList {
    std::mutex mutex;
    std::vector<uint32_t> blocks;
  };

  std::unique_ptr<Buffer> buffer_;
  size_t block_bytes_ = 0, blocks_ = 0;
  std::shared_ptr<FreeList> free_ = std::make_shared<FreeList>();  // outlives blocks that snapshots still hold
};

// Where the parts of a state lie, for one model.
struct StateLayout {
  Device& device;
  const ModelConfig& config;
  KvPool& pool;
  std::shared_ptr<MemoryMeter> meter;  // of recurrent state

  size_t history_bytes() const;    // of one linear layer: f32 [conv_taps - 1, channels]
  size_t recurrent_bytes() const;  // of one linear layer: f32 [value_heads, 128, 128]
  size_t bytes() const;            // of all linear layers
  // Of the linear layer with this number among the linear ones.
  BufferView history(const Buffer& memory, int index) const;
  BufferView recurrent(const Buffer& memory, int index) const;
};

class GpuState : public State {
 public:
  static Result<std::unique_ptr<GpuState>> create(const StateLayout& layout, int64_t max_tokens);

  // Blocks of its own for `tokens` more tokens; the table on the device follows.
  Result<void> reserve(int64_t tokens);
  Result<void> set_step(uint32_t token);  // and the position
  Result<void> clear();
  void advance(int64_t tokens) {  // after a step or chunk that read before() and wrote after()
    position_ += tokens;
    parity_ = 1 - parity_;
  }
  // The last step has not been: only the one before it can be taken back so.
  void take_back() {
    position_ -= 1;
    parity_ = 1 - parity_;
  }
  void move_to(int64_t position) { position_ = position; }

  const Buffer& before() const { return *memory_[parity_]; }
  const Buffer& after() const { return *memory_[1 - parity_]; }
  int parity() const { return parity_; }
  BufferView step() const { return {table_.get(), 0, 16}; }               // SequenceStep
  BufferView blocks() const { return {table_.get(), 16, table_bytes_}; }  // uint [max blocks]

  std::vector<KvPool::Block> kv;

  // The decode step as the device keeps it ready, and what it was made for.
  struct Recorded {
    std::unique_ptr<Recording> list;
    uint64_t generation = 0;  // of the temporaries' memory
    uint32_t splits = 0;
    std::optional<DeviceSampling> sampling;
  };
  std::array<Recorded, 2> recorded;  // by parity

 private:
  explicit GpuState(const StateLayout& layout) : layout_(layout), metered_(layout.meter, 2 * layout.bytes()) {}

  Result<void> upload_table();

  const StateLayout& layout_;
  std::array<std::unique_ptr<Buffer>, 2> memory_;
  std::unique_ptr<Buffer> table_;
  size_t table_bytes_ = 0;
  bool table_valid_ = false;  // the device's table is that of kv
  int parity_ = 0;
  MeteredBytes metered_;

  friend class GpuSnapshot;
};

class GpuSnapshot : public Snapshot {
 public:
  static Result<std::unique_ptr<GpuSnapshot>> take(const StateLayout& layout, const GpuState& state);
  static Result<std::unique_ptr<GpuSnapshot>> read(const StateLayout& layout, const GpuSnapshot* base, int64_t position,
                                                   std::span<const std::byte> data);

  void write(int64_t from, const Sink& sink) const override;
  Result<void> restore_to(GpuState& state) const;

 private:
  explicit GpuSnapshot(const StateLayout& layout) : layout_(layout), metered_(layout.meter, layout.bytes()) {}

  const StateLayout& layout_;
  std::vector<KvPool::Block> kv_;
  std::unique_ptr<Buffer> memory_;
  MeteredBytes metered_;
};

}  // namespace lily::gpu
