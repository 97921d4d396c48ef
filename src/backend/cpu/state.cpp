#include "backend/cpu/state.h"

#include <algorithm>

namespace lily::cpu {

void KvBlock::write(int64_t kv_head, int64_t token, const float* key, const float* value) {
  auto* keys_of_head = const_cast<std::byte*>(keys(kv_head));
  auto* values_of_head = const_cast<std::byte*>(values(kv_head));
  for (int64_t d = 0; d < head_dim_; ++d) {
    const int64_t k = key_index(token, d), v = token * head_dim_ + d;
    if (element_ == 4) {
      reinterpret_cast<float*>(keys_of_head)[k] = key[d];
      reinterpret_cast<float*>(values_of_head)[v] = value[d];
    } else {
      reinterpret_cast<uint16_t*>(keys_of_head)[k] = float_to_bf16(key[d]);
      reinterpret_cast<uint16_t*>(values_of_head)[v] = float_to_bf16(value[d]);
    }
  }
}

CpuState::CpuState(const ModelConfig& config, int64_t max_tokens) : layers(config.layers.size()) {
  max_tokens_ = max_tokens;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (config.layers[i] != LayerKind::linear_attention) continue;
    layers[i].conv.resize(int64_t{config.conv_kernel - 1} * config.conv_channels());
    layers[i].recurrent.resize(int64_t{config.linear_value_heads} * config.linear_key_dim * config.linear_value_dim);
  }
}

void CpuState::clear() {
  position_ = 0;
  for (LayerState& layer : layers) {
    std::fill(layer.conv.begin(), layer.conv.end(), 0.0f);
    std::fill(layer.recurrent.begin(), layer.recurrent.end(), 0.0f);
  }
}

CpuSnapshot::CpuSnapshot(const CpuState& state) {
  position_ = state.position();
  for (const LayerState& layer : state.layers) {
    conv_.push_back(layer.conv);
    recurrent_.push_back(layer.recurrent);
  }
}

size_t CpuSnapshot::bytes() const {
  size_t floats = 0;
  for (size_t i = 0; i < conv_.size(); ++i) floats += conv_[i].size() + recurrent_[i].size();
  return floats * sizeof(float);
}

void CpuSnapshot::restore_to(CpuState& state) const {
  state.move_to(position_);
  for (size_t i = 0; i < conv_.size(); ++i) {
    state.layers[i].conv = conv_[i];
    state.layers[i].recurrent = recurrent_[i];
  }
}

}  // namespace lily::cpu
