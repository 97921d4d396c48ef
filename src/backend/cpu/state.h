// One sequence on the CPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "base/aligned_vector.h"
#include "base/dtype.h"
#include "base/memory_meter.h"

namespace lily::cpu {

// Keys and values of a run of consecutive tokens, for one layer, in f32 or bf16. Blocks are made as the sequence grows,
// so a long context costs memory only when it is used, and attention streams through whole blocks.
class KvBlock {
 public:
  static constexpr int64_t tokens = 256;

  KvBlock(const ModelConfig& config, DType dtype, const std::shared_ptr<MemoryMeter>& meter)
      : head_dim_(config.head_dim),
        kv_heads_(config.num_kv_heads),
        element_(size_of(dtype)),
        data_(2 * kv_heads_ * tokens * head_dim_ * element_),
        metered_(meter, data_.size()) {}

  // [tokens / key_group, head_dim, key_group], after RoPE
  const std::byte* keys(int64_t kv_head) const { return head(kv_head); }
  const std::byte* values(int64_t kv_head) const { return head(kv_heads_ + kv_head); }  // [tokens, head_dim]
  // Where element `dim` of a token's key lies in keys().
  int64_t key_index(int64_t token, int64_t dim) const {
    return (token / key_group * head_dim_ + dim) * key_group + token % key_group;
  }
  void write(int64_t kv_head, int64_t token, const float* key, const float* value);

  std::span<std::byte> bytes() { return data_; }

 private:
  const std::byte* head(int64_t i) const { return data_.data() + i * tokens * head_dim_ * element_; }

  int64_t head_dim_;
  int64_t kv_heads_;
  int64_t element_;  // bytes
  AlignedVector<std::byte> data_;
  MeteredBytes metered_;
};

// Blocks are shared with snapshots and other sequences until somebody writes to them.
using KvBlocks = std::vector<std::shared_ptr<KvBlock>>;

struct LayerState {
  KvBlocks kv;                     // full attention
  AlignedVector<float> conv;       // linear attention: [conv_kernel - 1, conv_channels], oldest first
  AlignedVector<float> recurrent;  // linear attention: [value_heads, key_dim, value_dim]
};

// How a state's memory looks, for one model and backend.
struct StateLayout {
  const ModelConfig& config;
  DType kv_dtype;
  std::shared_ptr<MemoryMeter> meter;

  size_t recurrent_bytes() const;  // of all layers, convolution included
  size_t block_bytes() const;      // of one KvBlock
};

class CpuState : public State {
 public:
  CpuState(const StateLayout& layout, int64_t max_tokens);

  void advance(int64_t tokens) { position_ += tokens; }
  void move_to(int64_t position) { position_ = position; }
  void clear();  // position 0, recurrent state zero
  // Blocks for `tokens` more tokens, and none of those that will be written shared with anybody.
  void reserve(int64_t tokens);

  std::vector<LayerState> layers;

 private:
  const StateLayout& layout_;
  MeteredBytes metered_;
};

class CpuSnapshot : public Snapshot {
 public:
  CpuSnapshot(const StateLayout& layout, const CpuState& state);
  static Result<std::unique_ptr<CpuSnapshot>> read(const StateLayout& layout, const CpuSnapshot* base, int64_t position,
                                                   std::span<const std::byte> data);

  void write(int64_t from, const Sink& sink) const override;
  void restore_to(CpuState& state) const;

 private:
  CpuSnapshot(const StateLayout& layout, int64_t position);

  std::vector<LayerState> layers_;
  MeteredBytes metered_;
};

}  // namespace lily::cpu
