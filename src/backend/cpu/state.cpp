#include "backend/cpu/state.h"

#include <algorithm>
#include <atomic>

namespace lily::cpu {
namespace {

int64_t conv_floats(const ModelConfig& config) { return int64_t{config.conv_kernel - 1} * config.conv_channels(); }

int64_t recurrent_floats(const ModelConfig& config) {
  return int64_t{config.linear_value_heads} * config.linear_key_dim * config.linear_value_dim;
}

std::vector<LayerState> empty_layers(const ModelConfig& config) {
  std::vector<LayerState> layers(config.layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (config.layers[i] != LayerKind::linear_attention) continue;
    layers[i].conv.resize(conv_floats(config));
    layers[i].recurrent.resize(recurrent_floats(config));
  }
  return layers;
}

}  // namespace

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

size_t StateLayout::recurrent_bytes() const {
  const auto layers = std::count(config.layers.begin(), config.layers.end(), LayerKind::linear_attention);
  return static_cast<size_t>(layers * (conv_floats(config) + recurrent_floats(config))) * sizeof(float);
}

size_t StateLayout::block_bytes() const {
  return static_cast<size_t>(2 * config.num_kv_heads * KvBlock::tokens * config.head_dim) * size_of(kv_dtype);
}

CpuState::CpuState(const StateLayout& layout, int64_t max_tokens)
    : layers(empty_layers(layout.config)), layout_(layout), metered_(layout.meter, layout.recurrent_bytes()) {
  max_tokens_ = max_tokens;
}

void CpuState::clear() {
  position_ = 0;
  for (LayerState& layer : layers) {
    layer.kv.clear();
    std::fill(layer.conv.begin(), layer.conv.end(), 0.0f);
    std::fill(layer.recurrent.begin(), layer.recurrent.end(), 0.0f);
  }
}

void CpuState::reserve(int64_t tokens) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layout_.config.layers[i] != LayerKind::full_attention) continue;
    KvBlocks& kv = layers[i].kv;
    const auto partial = static_cast<size_t>(position_ / KvBlock::tokens);  // the one that will be written next
    if (partial < kv.size() && kv[partial].use_count() > 1) kv[partial] = std::make_shared<KvBlock>(*kv[partial]);
    std::atomic_thread_fence(std::memory_order_acquire);  // another thread may just have read it and let it go
    while (static_cast<int64_t>(kv.size()) * KvBlock::tokens < position_ + tokens) {
      kv.push_back(std::make_shared<KvBlock>(layout_.config, layout_.kv_dtype, layout_.meter));
    }
  }
}

CpuSnapshot::CpuSnapshot(const StateLayout& layout, const CpuState& state)
    : layers_(state.layers), metered_(layout.meter, layout.recurrent_bytes()) {
  position_ = state.position();
}

CpuSnapshot::CpuSnapshot(const StateLayout& layout, int64_t position)
    : layers_(empty_layers(layout.config)), metered_(layout.meter, layout.recurrent_bytes()) {
  position_ = position;
}

void CpuSnapshot::restore_to(CpuState& state) const {
  state.move_to(position_);
  state.layers = layers_;
}

// Layer by layer: convolution and recurrent state, then whole blocks from the one that holds row `from` on.
void CpuSnapshot::write(int64_t from, const Sink& sink) const {
  for (const LayerState& layer : layers_) {
    sink(std::as_bytes(std::span(layer.conv)));
    sink(std::as_bytes(std::span(layer.recurrent)));
    for (auto block = static_cast<size_t>(from / KvBlock::tokens); block < layer.kv.size(); ++block) {
      sink(layer.kv[block]->bytes());
    }
  }
}

Result<std::unique_ptr<CpuSnapshot>> CpuSnapshot::read(const StateLayout& layout, const CpuSnapshot* base,
                                                       int64_t position, std::span<const std::byte> data) {
  const int64_t from = base ? base->position() : 0;
  const int64_t first = from / KvBlock::tokens, end = (position + KvBlock::tokens - 1) / KvBlock::tokens;
  const auto attention =
      std::count(layout.config.layers.begin(), layout.config.layers.end(), LayerKind::full_attention);
  const size_t wanted =
      layout.recurrent_bytes() + layout.block_bytes() * static_cast<size_t>(attention * (end - first));
  if (position < from || data.size() != wanted) {
    return Error{"snapshot", "wrong size", std::to_string(wanted) + " bytes", std::to_string(data.size())};
  }
  const auto take = [&data](std::span<std::byte> to) {
    std::copy_n(data.begin(), to.size(), to.begin());
    data = data.subspan(to.size());
  };
  std::unique_ptr<CpuSnapshot> snapshot(new CpuSnapshot(layout, position));
  for (size_t i = 0; i < snapshot->layers_.size(); ++i) {
    LayerState& layer = snapshot->layers_[i];
    take(std::as_writable_bytes(std::span(layer.conv)));
    take(std::as_writable_bytes(std::span(layer.recurrent)));
    if (layout.config.layers[i] != LayerKind::full_attention) continue;
    if (base) layer.kv.assign(base->layers_[i].kv.begin(), base->layers_[i].kv.begin() + first);
    for (int64_t block = first; block < end; ++block) {
      layer.kv.push_back(std::make_shared<KvBlock>(layout.config, layout.kv_dtype, layout.meter));
      take(layer.kv.back()->bytes());
    }
  }
  return snapshot;
}

}  // namespace lily::cpu
