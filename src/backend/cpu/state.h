// One sequence on the CPU.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
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

  // [tokens / key_group, head_dim, key_group], after RoPE
  const std::byte* keys(int64_t kv_head) const { return head(kv_head); }
  const std::byte* values(int64_t kv_head) const { return head(kv_heads_ + kv_head); }  // [tokens, head_dim]
  // Where element `dim` of a token's key lies in keys().
  int64_t key_index(int64_t token, int64_t dim) const {
    return (token / key_group * head_dim_ + dim) * key_group + token % key_group;
  }
  void write(int64_t kv_head, int64_t token, const float* key, const float* value);

 private:
  const std::byte* head(int64_t i) const { return data_.data() + i * tokens * head_dim_ * element_; }

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
