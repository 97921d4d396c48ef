// One sequence on the CPU.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/aligned_vector.h"
#include "base/dtype.h"

namespace lily::cpu {

// Keys and values of a run of consecutive tokens, for one layer, in f32 or bf16. Blocks are made as the sequence grows,
// so a long context costs memory only when it is used, and attention streams through whole blocks.
class KvBlock {
 public:
  static constexpr int64_t tokens = 256;

  KvBlock(const ModelConfig& config, DType dtype)
      : head_dim_(config.head_dim),
        kv_heads_(config.num_kv_heads),
        element_(size_of(dtype)),
        data_(2 * kv_heads_ * tokens * head_dim_ * element_) {}

  const std::byte* keys(int64_t kv_head) const { return row(kv_head, 0); }  // [tokens, head_dim], after RoPE
  const std::byte* values(int64_t kv_head) const { return row(kv_heads_ + kv_head, 0); }  // [tokens, head_dim]
  void write_key(int64_t kv_head, int64_t token, const float* key) { write(kv_head, token, key); }
  void write_value(int64_t kv_head, int64_t token, const float* value) { write(kv_heads_ + kv_head, token, value); }

 private:
  const std::byte* row(int64_t head, int64_t token) const {
    return data_.data() + (head * tokens + token) * head_dim_ * element_;
  }
  void write(int64_t head, int64_t token, const float* in);

  int64_t head_dim_;
  int64_t kv_heads_;
  int64_t element_;  // bytes
  AlignedVector<std::byte> data_;
};

struct LayerState {
  std::vector<KvBlock> kv;         // full attention
  AlignedVector<float> conv;       // linear attention: [conv_kernel - 1, conv_channels], oldest first
  AlignedVector<float> recurrent;  // linear attention: [value_heads, key_dim, value_dim]
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
  std::vector<AlignedVector<float>> conv_, recurrent_;  // by layer
};

}  // namespace lily::cpu
