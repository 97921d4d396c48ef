#include "model/shapes.h"

#include "model/tensor_names.h"

namespace lily {
namespace {

std::string layer_path(int layer) { return "language_model.model.layers." + std::to_string(layer); }

ModelConfig qwen36_35b_a3b() {
  ModelConfig c;
  c.model_type = "qwen3_5_moe";
  c.hidden_size = 2048;
  c.vocab_size = 248320;
  c.layers = layer_pattern(40);
  c.num_heads = 16;
  c.num_kv_heads = 2;
  c.head_dim = 256;
  c.rotary_dim = 64;
  c.rope_theta = 1e7;
  c.linear_key_heads = 16;
  c.linear_value_heads = 32;
  c.linear_key_dim = 128;
  c.linear_value_dim = 128;
  c.conv_kernel = 4;
  c.num_experts = 256;
  c.experts_per_token = 8;
  c.expert_size = 512;
  c.shared_expert_size = 512;
  c.rms_norm_eps = 1e-6f;
  c.max_position_embeddings = 262144;
  c.eos_token_ids = {248046, 248044};
  return c;
}

// The size of the bundled model.
ModelConfig tiny() {
  ModelConfig c = qwen36_35b_a3b();
  c.hidden_size = 256;
  c.vocab_size = 8192;
  c.layers = layer_pattern(8);
  c.num_heads = 8;
  c.num_kv_heads = 1;
  c.linear_key_heads = 2;
  c.linear_value_heads = 4;
  c.num_experts = 32;
  c.experts_per_token = 4;
  c.expert_size = 128;
  c.shared_expert_size = 128;
  c.max_position_embeddings = 8192;
  c.eos_token_ids.clear();
  return c;
}

// Appends tensors as they are named and stored in MLX checkpoints.
class TensorList {
 public:
  explicit TensorList(const ModelConfig& config) : config_(config) {}

  void matrix(const std::string& module, std::vector<int64_t> shape) {
    const Quantization q = config_.quantization.of(module);
    if (q.bits == 0 || shape.back() % q.group_size != 0) {
      return tensors.push_back({module + ".weight", DType::bf16, std::move(shape)});
    }
    std::vector<int64_t> packed = shape, grouped = shape;
    packed.back() = shape.back() * q.bits / 32;
    grouped.back() = shape.back() / q.group_size;
    tensors.push_back({module + ".weight", DType::u32, std::move(packed)});
    tensors.push_back({module + ".scales", DType::bf16, grouped});
    tensors.push_back({module + ".biases", DType::bf16, std::move(grouped)});
  }
  void vector(const std::string& name, std::vector<int64_t> shape) {
    tensors.push_back({name, DType::bf16, std::move(shape)});
  }

  void mlp(const std::string& module, int64_t size) {
    matrix(module + ".gate_proj", {size, config_.hidden_size});
    matrix(module + ".up_proj", {size, config_.hidden_size});
    matrix(module + ".down_proj", {config_.hidden_size, size});
  }

  std::vector<TensorSpec> tensors;

 private:
  const ModelConfig& config_;
};

void add_full_attention(TensorList& list, const std::string& attention, const ModelConfig& c) {
  list.matrix(attention + ".q_proj", {2 * c.query_size(), c.hidden_size});
  list.matrix(attention + ".k_proj", {c.kv_size(), c.hidden_size});
  list.matrix(attention + ".v_proj", {c.kv_size(), c.hidden_size});
  list.matrix(attention + ".o_proj", {c.hidden_size, c.query_size()});
  list.vector(attention + ".q_norm.weight", {c.head_dim});
  list.vector(attention + ".k_norm.weight", {c.head_dim});
}

void add_linear_attention(TensorList& list, const std::string& attention, const ModelConfig& c) {
  list.matrix(attention + ".in_proj_qkv", {c.conv_channels(), c.hidden_size});
  list.matrix(attention + ".in_proj_z", {c.linear_value_size(), c.hidden_size});
  list.matrix(attention + ".in_proj_a", {c.linear_value_heads, c.hidden_size});
  list.matrix(attention + ".in_proj_b", {c.linear_value_heads, c.hidden_size});
  list.matrix(attention + ".out_proj", {c.hidden_size, c.linear_value_size()});
  list.vector(attention + ".conv1d.weight", {c.conv_channels(), c.conv_kernel, 1});
  list.vector(attention + ".A_log", {c.linear_value_heads});
  list.vector(attention + ".dt_bias", {c.linear_value_heads});
  list.vector(attention + ".norm.weight", {c.linear_value_dim});
}

void add_moe(TensorList& list, const std::string& mlp, const ModelConfig& c) {
  list.matrix(mlp + ".gate", {c.num_experts, c.hidden_size});
  list.matrix(mlp + ".switch_mlp.gate_proj", {c.num_experts, c.expert_size, c.hidden_size});
  list.matrix(mlp + ".switch_mlp.up_proj", {c.num_experts, c.expert_size, c.hidden_size});
  list.matrix(mlp + ".switch_mlp.down_proj", {c.num_experts, c.hidden_size, c.expert_size});
  list.mlp(mlp + ".shared_expert", c.shared_expert_size);
  list.matrix(mlp + ".shared_expert_gate", {1, c.hidden_size});
}

}  // namespace

std::vector<LayerKind> layer_pattern(int layers) {
  std::vector<LayerKind> kinds(layers, LayerKind::linear_attention);
  for (int i = 3; i < layers; i += 4) kinds[i] = LayerKind::full_attention;
  return kinds;
}

Result<ModelConfig> named_shape(std::string_view name) {
  if (name != "qwen3.6-35b-a3b" && name != "tiny") {
    return Error{"shape", "no such shape", "qwen3.6-35b-a3b or tiny", std::string(name)};
  }
  ModelConfig config = name == "tiny" ? tiny() : qwen36_35b_a3b();
  config.quantization = mixed_quantization(config, {.bits = 4, .group_size = 64}, 8);
  return config;
}

QuantizationConfig mixed_quantization(const ModelConfig& config, Quantization fallback, int router_bits) {
  QuantizationConfig quantization{.fallback = fallback};
  if (!config.is_moe() || fallback.bits == 0 || router_bits == fallback.bits) return quantization;
  const Quantization gate = {.bits = router_bits, .group_size = fallback.group_size};
  for (int i = 0; i < config.num_layers(); ++i) {
    for (const char* module : {".mlp.gate", ".mlp.shared_expert_gate"}) {
      quantization.overrides.emplace(canonical_name(layer_path(i) + module), gate);
    }
  }
  return quantization;
}

std::vector<TensorSpec> published_tensors(const ModelConfig& config) {
  TensorList list(config);
  list.matrix("language_model.model.embed_tokens", {config.vocab_size, config.hidden_size});
  for (int i = 0; i < config.num_layers(); ++i) {
    const std::string layer = layer_path(i);
    list.vector(layer + ".input_layernorm.weight", {config.hidden_size});
    if (config.layers[i] == LayerKind::full_attention) {
      add_full_attention(list, layer + ".self_attn", config);
    } else {
      add_linear_attention(list, layer + ".linear_attn", config);
    }
    list.vector(layer + ".post_attention_layernorm.weight", {config.hidden_size});
    if (config.is_moe()) {
      add_moe(list, layer + ".mlp", config);
    } else {
      list.mlp(layer + ".mlp", config.mlp_size);
    }
  }
  list.vector("language_model.model.norm.weight", {config.hidden_size});
  if (!config.tie_word_embeddings) list.matrix("language_model.lm_head", {config.vocab_size, config.hidden_size});
  return std::move(list.tensors);
}

}  // namespace lily
