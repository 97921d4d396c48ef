// A small valid checkpoint in memory, to be written as it is or spoiled in one place.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/config_json.h"
#include "model/safetensors_writer.h"
#include "model/shapes.h"
#include "model/synthetic.h"

namespace lily::test {

struct TestTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }
};

// Four layers, the last one full attention; 4 bits, group size 32, 8-bit router.
inline ModelConfig small_config() {
  ModelConfig c = *named_shape("tiny");
  c.hidden_size = 64;
  c.vocab_size = 96;
  c.layers = layer_pattern(4);
  c.num_heads = 2;
  c.num_kv_heads = 1;
  c.head_dim = 32;
  c.rotary_dim = 8;
  c.linear_key_heads = 1;
  c.linear_value_heads = 2;
  c.linear_key_dim = 32;
  c.linear_value_dim = 32;
  c.num_experts = 4;
  c.experts_per_token = 2;
  c.expert_size = 32;
  c.shared_expert_size = 32;
  c.max_position_embeddings = 512;
  c.quantization = mixed_quantization(c, {.bits = 4, .group_size = 32}, 8);
  return c;
}

inline ModelConfig small_dense_config() {
  ModelConfig c = small_config();
  c.model_type = "qwen3_5";
  c.num_experts = c.experts_per_token = c.expert_size = c.shared_expert_size = 0;
  c.mlp_size = 96;
  c.quantization = mixed_quantization(c, {.bits = 4, .group_size = 32}, 8);
  return c;
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct TestModel {
  nlohmann::json config;
  std::map<std::string, TestTensor> tensors;

  explicit TestModel(const ModelConfig& c = small_config(), uint64_t seed = 1)
      : config(nlohmann::json::parse(config_json(c))) {
    for (const TensorSpec& spec : published_tensors(c)) {
      TestTensor tensor{spec.dtype, spec.shape, std::vector<std::byte>(spec.bytes())};
      fill_synthetic(spec, c, seed, 0, tensor.data);
      tensors.emplace(spec.name, std::move(tensor));
    }
  }

  nlohmann::json& text_config() { return config["text_config"]; }

  // The tensor of that name in the small model's published spelling.
  TestTensor& layer_tensor(int layer, const std::string& name) {
    return tensors.at("language_model.model.layers." + std::to_string(layer) + "." + name);
  }

  void rename(const std::string& from, const std::string& to) {
    auto node = tensors.extract(from);
    node.key() = to;
    tensors.insert(std::move(node));
  }
  void rename_prefix(const std::string& from, const std::string& to) {
    std::map<std::string, TestTensor> renamed;
    for (auto& [name, tensor] : tensors) {
      renamed.emplace(name.starts_with(from) ? to + name.substr(from.size()) : name, std::move(tensor));
    }
    tensors = std::move(renamed);
  }

  void write_tensors(const std::string& path, const std::function<bool(const std::string&)>& choose) const {
    std::vector<TensorSpec> specs;
    std::vector<std::span<const std::byte>> data;
    for (const auto& [name, tensor] : tensors) {
      if (!choose(name)) continue;
      specs.push_back({name, tensor.dtype, tensor.shape});
      data.emplace_back(tensor.data);
    }
    const Result<void> written = write_safetensors(path, specs, data);
    if (!written) ADD_FAILURE() << written.error().message();
  }

  // config.json and one model.safetensors.
  void write(const std::string& directory) const {
    write_text(directory + "/config.json", config.dump());
    write_tensors(directory + "/model.safetensors", [](const std::string&) { return true; });
  }

  // Two shards, the head and the embedding in the first, with an index.
  void write_sharded(const std::string& directory) const {
    write_text(directory + "/config.json", config.dump());
    const auto is_first = [](const std::string& name) { return name.find(".layers.") == std::string::npos; };
    write_tensors(directory + "/model-00001-of-00002.safetensors", is_first);
    write_tensors(directory + "/model-00002-of-00002.safetensors",
                  [&](const std::string& name) { return !is_first(name); });
    nlohmann::json map;
    for (const auto& [name, tensor] : tensors) {
      map[name] = is_first(name) ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
    }
    write_text(directory + "/model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  }
};

// The same model as Hugging Face publishes it. `unquantized` holds bf16 tensors only.
inline TestModel to_raw(TestModel unquantized) {
  TestModel raw = std::move(unquantized);
  for (auto& [name, tensor] : raw.tensors) {
    if (name.ends_with("conv1d.weight")) std::swap(tensor.shape[1], tensor.shape[2]);
    if (name.find("norm.weight") == std::string::npos || name.ends_with("linear_attn.norm.weight")) continue;
    for (uint16_t& w : tensor.as<uint16_t>()) w = float_to_bf16(bf16_to_float(w) - 1);
  }
  for (int i = 0;; ++i) {
    const std::string mlp = "language_model.model.layers." + std::to_string(i) + ".mlp.";
    const auto gate = raw.tensors.find(mlp + "switch_mlp.gate_proj.weight");
    if (gate == raw.tensors.end()) break;
    const TestTensor& up = raw.tensors.at(mlp + "switch_mlp.up_proj.weight");
    TestTensor both{DType::bf16, {up.shape[0], 2 * up.shape[1], up.shape[2]}, {}};
    const size_t expert_bytes = up.data.size() / up.shape[0];
    for (int64_t e = 0; e < up.shape[0]; ++e) {
      for (const TestTensor* part : {&std::as_const(gate->second), &up}) {
        both.data.insert(both.data.end(), part->data.begin() + e * expert_bytes,
                         part->data.begin() + (e + 1) * expert_bytes);
      }
    }
    raw.tensors.erase(gate);
    raw.tensors.erase(mlp + "switch_mlp.up_proj.weight");
    raw.tensors.emplace(mlp + "experts.gate_up_proj", std::move(both));
    raw.rename(mlp + "switch_mlp.down_proj.weight", mlp + "experts.down_proj");
  }
  raw.rename_prefix("language_model.model.", "model.language_model.");
  raw.rename_prefix("language_model.lm_head.", "lm_head.");
  raw.config.erase("quantization");
  return raw;
}

}  // namespace lily::test
