// The architecture's numbers, read from config.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lily {

enum class LayerKind { linear_attention, full_attention };

// MLX affine quantisation of one matrix: w = code * scale + bias, one scale and bias for `group_size` columns.
struct Quantization {
  int bits = 0;  // 2, 3, 4, 5, 6 or 8; 0: not quantised
  int group_size = 0;
  bool operator==(const Quantization&) const = default;
};

// `quantization` of config.json: a default and overrides by module path. The paths are kept in the canonical spelling
// ("model.layers.0.mlp.gate"); `of` takes any spelling. An override of `false` is a Quantization with bits 0.
struct QuantizationConfig {
  Quantization fallback;
  std::map<std::string, Quantization, std::less<>> overrides;

  Quantization of(std::string_view module_path) const;
};

struct ModelConfig {
  std::string model_type;  // "qwen3_5_moe" or "qwen3_5" (dense)
  int hidden_size = 0;
  int vocab_size = 0;
  std::vector<LayerKind> layers;

  // Full attention
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int rotary_dim = 0;  // leading dimensions of a head that RoPE turns
  double rope_theta = 0;

  // Gated DeltaNet
  int linear_key_heads = 0;
  int linear_value_heads = 0;
  int linear_key_dim = 0;    // of one head
  int linear_value_dim = 0;  // of one head
  int conv_kernel = 0;       // taps of the causal convolution

  // Feed-forward: experts where num_experts > 0, else one dense MLP
  int num_experts = 0;
  int experts_per_token = 0;
  int expert_size = 0;         // intermediate size of a routed expert
  int shared_expert_size = 0;  // intermediate size of the shared expert
  int mlp_size = 0;            // intermediate size of the dense MLP

  float rms_norm_eps = 0;
  bool tie_word_embeddings = false;
  int64_t max_position_embeddings = 0;
  std::vector<int32_t> eos_token_ids;  // config.json's and generation_config.json's, united

  QuantizationConfig quantization;

  int num_layers() const { return static_cast<int>(layers.size()); }
  bool is_moe() const { return num_experts > 0; }
  int query_size() const { return num_heads * head_dim; }
  int kv_size() const { return num_kv_heads * head_dim; }
  int linear_key_size() const { return linear_key_heads * linear_key_dim; }
  int linear_value_size() const { return linear_value_heads * linear_value_dim; }
  int conv_channels() const { return 2 * linear_key_size() + linear_value_size(); }  // q | k | v
};

// Parses config.json. `where` names the file in errors. Every number is checked: present, positive, consistent
// (heads divisible by their KV or key heads, top-k within the experts, rotary_dim even and within a head).
Result<ModelConfig> parse_config(std::string_view json, const std::string& where);

// Adds the eos_token_id of a generation_config.json, one id or several, to config.eos_token_ids.
Result<void> add_eos_token_ids(const std::string& generation_config_path, ModelConfig& config);

}  // namespace lily
