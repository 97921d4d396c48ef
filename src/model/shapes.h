// Configurations known by name, and what a published checkpoint of a configuration holds.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/tensor_spec.h"

namespace lily {

// "qwen3.6-35b-a3b" or "tiny", quantised as published: 4 bits, group size 64, router and shared gate 8 bits.
Result<ModelConfig> named_shape(std::string_view name);

// The usual pattern: every fourth layer is full attention.
std::vector<LayerKind> layer_pattern(int layers);

// Every matrix as `fallback`, and the two gates of a MoE layer with `router_bits`.
QuantizationConfig mixed_quantization(const ModelConfig& config, Quantization fallback, int router_bits);

// Every tensor that the published MLX form of `config` holds: quantised as config.quantization says where the group
// size divides the columns, everything else BF16.
std::vector<TensorSpec> published_tensors(const ModelConfig& config);

}  // namespace lily
