// One sequence on the CPU.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"

namespace lily::cpu {

// Keys and values of a run of consecutive tokens, for one layer. Blocks are made as the sequence grows, so a long
// context costs memory only when it is used, and attention streams through whole blocks.
class KvBlock {
 public:
  static constexpr int64_t tokens = 256;

  explicit KvBlock(const ModelConfig& config)
      : head_floats_(tokens * config.head_dim),
        kv_heads_(config.num_kv_heads),
        data_(new float[2 * kv_heads_ * head_floats_]) {}

  float* keys(int64_t kv_head) { return data_.get() + kv_head * head_floats_; }  // [tokens, head_dim], after RoPE
  float* values(int64_t kv_head) { return keys(kv_heads_ + kv_head); }           // [tokens, head_dim]

 private:
  int64_t head_floats_;
  int64_t kv_heads_;
  std::unique_ptr<float[]> data_;
};

struct LayerState {
  std::vector<KvBlock> kv;       // full attention
  std::vector<float> conv;       // linear attention: [conv_kernel - 1, conv_channels], oldest first
  std::vector<float> recurrent;  // linear attention: [value_heads, key_dim, value_dim]
};

class CpuState : public State {
 public:
  CpuState(const ModelConfig& config, int64_t max_tokens);

  void advance(int64_t tokens) { position_ += tokens; }
  void move_to(int64_t position) { position_ = position; }
  void clear();  // position 0, recurrent state zero

  std::vector<LayerState> layers;
};

// The recurrent and convolution states of all linear-attention layers.
class CpuSnapshot : public Snapshot {
 public:
  explicit CpuSnapshot(const CpuState& state);
  size_t bytes() const override;
  void restore_to(CpuState& state) const;

 private:
  std::vector<std::vector<float>> conv_, recurrent_;  // by layer
};

}  // namespace lily::cpu
