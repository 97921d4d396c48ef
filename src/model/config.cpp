#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "model/json.h"
#include "model/tensor_names.h"

namespace lily {
namespace {

using nlohmann::json;

// Upper bounds far above any model of the family; within them no product of two fields leaves 32 bits that is kept
// in an int, and no product of three leaves 63 bits.
constexpr int max_layers = 1024;
constexpr int max_hidden_size = 1 << 17;
constexpr int max_intermediate_size = 1 << 20;
constexpr int max_heads = 1024;
constexpr int max_head_dim = 1024;
constexpr int max_experts = 4096;
constexpr int max_vocab_size = 1 << 22;
constexpr int max_conv_kernel = 64;

// Reads fields of one JSON object. The first error sticks and later reads give zeros, so that a list of fields reads
// as a list; the caller looks at error() once at the end.
class FieldReader {
 public:
  FieldReader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const std::optional<Error>& error() const { return error_; }

  const json* find(const char* name) const {
    const auto field = object_.find(name);
    return field == object_.end() || field->is_null() ? nullptr : &*field;
  }

  void fail(const std::string& field, std::string what, std::string expected, std::string got) {
    if (!error_) error_ = Error{where_ + ": " + field, std::move(what), std::move(expected), std::move(got)};
  }
  void adopt(const std::optional<Error>& error) {
    if (!error_) error_ = error;
  }

  int64_t integer(const char* name, int64_t min, int64_t max) {
    const json* field = find(name);
    const std::string expected = "an integer from " + std::to_string(min) + " to " + std::to_string(max);
    if (!field) return fail(name, "missing", expected, ""), 0;
    const bool fits = field->is_number_integer() &&
                      (!field->is_number_unsigned() || field->get<uint64_t>() <= static_cast<uint64_t>(max));
    if (!fits || field->get<int64_t>() < min || field->get<int64_t>() > max) {
      return fail(name, "wrong value", expected, short_form(*field)), 0;
    }
    return field->get<int64_t>();
  }
  int size(const char* name, int max) { return static_cast<int>(integer(name, 1, max)); }

  double number_above_zero(const char* name, double max) {
    const json* field = find(name);
    if (!field) return fail(name, "missing", "a number", ""), 0;
    const double value = field->is_number() ? field->get<double>() : 0;
    if (value > 0 && value <= max) return value;
    return fail(name, "wrong value", "a number above 0, at most " + json(max).dump(), short_form(*field)), 0;
  }

  // A field that only one value is implemented for; a missing one means that value.
  void require(const char* name, const json& only) {
    const json* field = find(name);
    if (field && *field != only) fail(name, "not supported", only.dump(), short_form(*field));
  }

 private:
  const json& object_;
  std::string where_;
  std::optional<Error> error_;
};

Result<std::string> read_model_type(const json& root, const json& text, const std::string& where) {
  const json& holder = root.contains("model_type") ? root : text;
  const auto field = holder.find("model_type");
  const std::string given = field != holder.end() && field->is_string() ? field->get<std::string>() : "";
  for (const std::string known : {"qwen3_5_moe", "qwen3_5"}) {
    if (given == known || given == known + "_text") return known;
  }
  return Error{where + ": model_type", "architecture not supported", "qwen3_5_moe or qwen3_5",
               field == holder.end() ? "none" : short_form(*field)};
}

std::vector<LayerKind> read_layers(FieldReader& text) {
  const int count = text.size("num_hidden_layers", max_layers);
  std::vector<LayerKind> layers;
  const json* types = text.find("layer_types");
  if (!types) {
    const int interval = text.size("full_attention_interval", max_layers);
    if (text.error()) return {};
    for (int i = 0; i < count; ++i) {
      layers.push_back((i + 1) % interval == 0 ? LayerKind::full_attention : LayerKind::linear_attention);
    }
    return layers;
  }
  if (!types->is_array() || types->size() != static_cast<size_t>(count)) {
    const std::string got = types->is_array() ? std::to_string(types->size()) : kind_of(*types);
    return text.fail("layer_types", "wrong length", std::to_string(count) + " entries", got), layers;
  }
  for (const json& type : *types) {
    if (type != "linear_attention" && type != "full_attention") {
      return text.fail("layer_types", "unknown layer type", "linear_attention or full_attention", short_form(type)),
             layers;
    }
    layers.push_back(type == "full_attention" ? LayerKind::full_attention : LayerKind::linear_attention);
  }
  return layers;
}

// `rope_parameters`, or the older spelling: fields of text_config itself with `rope_scaling` for the type.
void read_rope(FieldReader& text, const json& object, const std::string& where, ModelConfig& config) {
  const json* parameters = text.find("rope_parameters");
  const json* scaling = text.find("rope_scaling");
  for (const auto& [name, field] : {std::pair("rope_parameters", parameters), std::pair("rope_scaling", scaling)}) {
    if (!field) continue;
    if (!field->is_object()) return text.fail(name, "wrong value", "an object", kind_of(*field));
    FieldReader rope(*field, where + ": " + name);
    rope.require("rope_type", "default");
    rope.require("type", "default");
    text.adopt(rope.error());
  }
  FieldReader rope(parameters ? *parameters : object, parameters ? where + ": rope_parameters" : where);
  config.rope_theta = rope.number_above_zero("rope_theta", 1e12);
  FieldReader& factor_holder = rope.find("partial_rotary_factor") ? rope : text;
  const double factor = factor_holder.number_above_zero("partial_rotary_factor", 1);
  text.adopt(rope.error());
  config.rotary_dim = static_cast<int>(config.head_dim * factor);
  if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0) {
    text.fail("partial_rotary_factor", "rotary dimensions not a positive even number", "head_dim times the factor even",
              std::to_string(config.rotary_dim));
  }
}

void read_attention(FieldReader& text, ModelConfig& config) {
  config.num_heads = text.size("num_attention_heads", max_heads);
  config.num_kv_heads = text.size("num_key_value_heads", max_heads);
  config.head_dim = text.size("head_dim", max_head_dim);
  config.linear_key_heads = text.size("linear_num_key_heads", max_heads);
  config.linear_value_heads = text.size("linear_num_value_heads", max_heads);
  config.linear_key_dim = text.size("linear_key_head_dim", max_head_dim);
  config.linear_value_dim = text.size("linear_value_head_dim", max_head_dim);
  // With one tap the two layouts of conv1d.weight look alike, and they tell raw norms from folded ones.
  config.conv_kernel = static_cast<int>(text.integer("linear_conv_kernel_dim", 2, max_conv_kernel));
  if (text.error()) return;
  if (config.num_heads % config.num_kv_heads != 0) {
    text.fail("num_attention_heads", "not divisible by num_key_value_heads",
              "a multiple of " + std::to_string(config.num_kv_heads), std::to_string(config.num_heads));
  }
  if (config.linear_value_heads % config.linear_key_heads != 0) {
    text.fail("linear_num_value_heads", "not divisible by linear_num_key_heads",
              "a multiple of " + std::to_string(config.linear_key_heads), std::to_string(config.linear_value_heads));
  }
  text.require("attn_output_gate", true);
  text.require("attention_bias", false);
}

void read_feed_forward(FieldReader& text, ModelConfig& config) {
  text.require("hidden_act", "silu");
  if (config.model_type == "qwen3_5") {
    text.require("num_experts", 0);
    config.mlp_size = text.size("intermediate_size", max_intermediate_size);
    return;
  }
  config.num_experts = text.size("num_experts", max_experts);
  config.experts_per_token = text.size("num_experts_per_tok", max_experts);
  config.expert_size = text.size("moe_intermediate_size", max_intermediate_size);
  config.shared_expert_size = text.size("shared_expert_intermediate_size", max_intermediate_size);
  text.require("mlp_only_layers", json::array());
  text.require("decoder_sparse_step", 1);
  if (config.experts_per_token > config.num_experts) {
    text.fail("num_experts_per_tok", "more than num_experts", "at most " + std::to_string(config.num_experts),
              std::to_string(config.experts_per_token));
  }
}

// One `{bits, group_size, mode}` block.
Quantization read_quantization(const json& object, const std::string& where, std::optional<Error>& error) {
  FieldReader reader(object, where);
  const json* mode = reader.find("mode");
  if (mode && *mode != "affine") reader.fail("mode", "quantisation not supported", "\"affine\"", short_form(*mode));
  Quantization quantization;
  quantization.bits = reader.size("bits", 8);
  quantization.group_size = reader.size("group_size", 128);
  if (quantization.bits == 1 || quantization.bits == 7) {
    reader.fail("bits", "quantisation not supported", "2, 3, 4, 5, 6 or 8", std::to_string(quantization.bits));
  }
  if (quantization.group_size != 32 && quantization.group_size != 64 && quantization.group_size != 128) {
    reader.fail("group_size", "quantisation not supported", "32, 64 or 128", std::to_string(quantization.group_size));
  }
  if (!error) error = reader.error();
  return quantization;
}

Result<QuantizationConfig> read_quantization_config(const json& block, const std::string& where) {
  if (!block.is_object()) return Error{where, "wrong value", "an object", kind_of(block)};
  if (const auto method = block.find("quant_method"); method != block.end()) {
    return Error{where + ": quant_method", "quantisation not supported", "MLX affine (bits, group_size)",
                 short_form(*method)};
  }
  std::optional<Error> error;
  QuantizationConfig result;
  result.fallback = read_quantization(block, where, error);
  for (const auto& [path, value] : block.items()) {
    if ((!value.is_object() && !value.is_boolean()) || is_skipped(part_of(path + "."))) continue;
    Quantization quantization;
    if (value.is_object()) quantization = read_quantization(value, where + ": " + path, error);
    if (value == true) quantization = result.fallback;
    const auto [entry, fresh] = result.overrides.emplace(canonical_name(path), quantization);
    if (!fresh && entry->second != quantization && !error) {
      error = Error{where + ": " + path, "contradicts the same module under another prefix", "", ""};
    }
  }
  if (error) return *error;
  return result;
}

Result<void> read_eos(const json& object, const std::string& where, std::vector<int32_t>& ids) {
  const auto field = object.find("eos_token_id");
  if (field == object.end() || field->is_null()) return {};
  const json list = field->is_array() ? *field : json::array({*field});
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<int32_t>::max()) {
      return Error{where + ": eos_token_id", "wrong value", "token ids", short_form(id)};
    }
    const auto token = id.get<int32_t>();
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) ids.push_back(token);
  }
  return {};
}

bool read_tied(const json& root, FieldReader& text) {
  const json* field = text.find("tie_word_embeddings");
  const auto outer = root.find("tie_word_embeddings");
  if (!field && outer != root.end()) field = &*outer;
  if (!field) return false;
  if (!field->is_boolean()) text.fail("tie_word_embeddings", "wrong value", "true or false", short_form(*field));
  return field->is_boolean() && field->get<bool>();
}

const json* find_quantization(const json& root, const json& text) {
  for (const char* name : {"quantization", "quantization_config"}) {
    for (const json* object : {&root, &text}) {
      if (const auto field = object->find(name); field != object->end() && !field->is_null()) return &*field;
    }
  }
  return nullptr;
}

}  // namespace

Quantization QuantizationConfig::of(std::string_view module_path) const {
  const auto entry = overrides.find(canonical_name(module_path));
  return entry == overrides.end() ? fallback : entry->second;
}

Result<ModelConfig> parse_config(std::string_view text_of_file, const std::string& where) {
  LILY_TRY(const json root, parse_json(text_of_file, where));
  if (!root.is_object()) return Error{where, "wrong JSON", "an object", kind_of(root)};
  const auto nested = root.find("text_config");
  const bool is_nested = nested != root.end();
  if (is_nested && !nested->is_object())
    return Error{where + ": text_config", "wrong value", "an object", kind_of(*nested)};
  const json& object = is_nested ? *nested : root;

  ModelConfig config;
  LILY_TRY(config.model_type, read_model_type(root, object, where));
  const std::string text_where = is_nested ? where + ": text_config" : where;
  FieldReader text(object, text_where);
  config.hidden_size = text.size("hidden_size", max_hidden_size);
  config.vocab_size = text.size("vocab_size", max_vocab_size);
  config.layers = read_layers(text);
  read_attention(text, config);
  read_rope(text, object, text_where, config);
  read_feed_forward(text, config);
  config.rms_norm_eps = static_cast<float>(text.number_above_zero("rms_norm_eps", 1));
  config.max_position_embeddings = text.integer("max_position_embeddings", 1, int64_t{1} << 40);
  config.tie_word_embeddings = read_tied(root, text);
  if (text.error()) return *text.error();
  LILY_CHECK(read_eos(root, where, config.eos_token_ids));
  LILY_CHECK(read_eos(object, text_where, config.eos_token_ids));
  if (const json* block = find_quantization(root, object)) {
    LILY_TRY(config.quantization, read_quantization_config(*block, where + ": quantization"));
  }
  return config;
}

Result<void> add_eos_token_ids(const std::string& generation_config_path, ModelConfig& config) {
  LILY_TRY(const json object, read_json_object(generation_config_path));
  return read_eos(object, generation_config_path, config.eos_token_ids);
}

}  // namespace lily
