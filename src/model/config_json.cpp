#include "model/config_json.h"

#include <fmt/format.h>

#include "model/tensor_names.h"

namespace lily {
namespace {

using nlohmann::json;

// 1e-06 rather than the 17 digits of the same float as a double.
double shortest(float value) { return std::stod(fmt::format("{}", value)); }

}  // namespace

json quantization_json(const QuantizationConfig& quantization) {
  const auto block = [](Quantization q) { return json{{"group_size", q.group_size}, {"bits", q.bits}}; };
  json result = block(quantization.fallback);
  result["mode"] = "affine";
  for (const auto& [path, q] : quantization.overrides) {
    result[published_name(path)] = q.bits > 0 ? block(q) : json(false);
  }
  return result;
}

std::string config_json(const ModelConfig& c) {
  json layer_types = json::array();
  for (const LayerKind kind : c.layers) {
    layer_types.push_back(kind == LayerKind::full_attention ? "full_attention" : "linear_attention");
  }
  json text = {{"model_type", c.model_type + "_text"},
               {"hidden_size", c.hidden_size},
               {"vocab_size", c.vocab_size},
               {"num_hidden_layers", c.num_layers()},
               {"layer_types", std::move(layer_types)},
               {"num_attention_heads", c.num_heads},
               {"num_key_value_heads", c.num_kv_heads},
               {"head_dim", c.head_dim},
               {"attn_output_gate", true},
               {"attention_bias", false},
               {"hidden_act", "silu"},
               {"rope_parameters",
                {{"rope_type", "default"},
                 {"rope_theta", c.rope_theta},
                 {"partial_rotary_factor", static_cast<double>(c.rotary_dim) / c.head_dim}}},
               {"linear_num_key_heads", c.linear_key_heads},
               {"linear_num_value_heads", c.linear_value_heads},
               {"linear_key_head_dim", c.linear_key_dim},
               {"linear_value_head_dim", c.linear_value_dim},
               {"linear_conv_kernel_dim", c.conv_kernel},
               {"rms_norm_eps", shortest(c.rms_norm_eps)},
               {"max_position_embeddings", c.max_position_embeddings},
               {"tie_word_embeddings", c.tie_word_embeddings}};
  if (c.is_moe()) {
    text["num_experts"] = c.num_experts;
    text["num_experts_per_tok"] = c.experts_per_token;
    text["moe_intermediate_size"] = c.expert_size;
    text["shared_expert_intermediate_size"] = c.shared_expert_size;
  } else {
    text["intermediate_size"] = c.mlp_size;
  }
  json root = {
      {"model_type", c.model_type}, {"text_config", std::move(text)}, {"tie_word_embeddings", c.tie_word_embeddings}};
  if (!c.eos_token_ids.empty()) root["eos_token_id"] = c.eos_token_ids;
  if (c.quantization.fallback.bits > 0) root["quantization"] = quantization_json(c.quantization);
  return root.dump(2) + "\n";
}

}  // namespace lily
