// Broken, hostile and unsupported config.json and generation_config.json.
#include <gtest/gtest.h>

#include "model/malformed.h"

namespace lily::test {
namespace {

Malformed config_case(std::string name, std::function<void(json& root, json& text)> change, Error expected) {
  return spoiled(
      std::move(name), [change](TestModel& m) { change(m.config, m.text_config()); }, std::move(expected));
}

std::vector<Malformed> json_cases() {
  return {
      damaged("NoConfig", remove_file("config.json"), {"/config.json", "cannot open: No such file or directory"}),
      damaged("NotJson", replace_file("config.json", "{\"a\": 1,}"),
              {"/config.json", "not valid JSON", "", "a syntax error at byte 9"}),
      damaged("EmptyConfig", replace_file("config.json", ""),
              {"/config.json", "not valid JSON", "", "a syntax error at byte 1"}),
      damaged("InvalidUtf8", replace_file("config.json", "{\"a\": \"\xff\"}"),
              {"/config.json", "not valid JSON", "", "a syntax error at byte 8"}),
      damaged("DuplicateKey", replace_file("config.json", R"({"model_type": "qwen3_5", "x": {"y": 1, "y": 2}})"),
              {"/config.json", "duplicate JSON key", "each key once", "y"}),
      damaged("DeepNesting", replace_file("config.json", std::string(100000, '[')),
              {"/config.json", "JSON nested too deeply", "32 levels at most", ""}),
      damaged("HugeNumber", replace_file("config.json", "{\"a\": 1e999}"),
              {"/config.json", "not valid JSON", "numbers within the range of a double", "one outside it"}),
      damaged("ArrayConfig", replace_file("config.json", "[]"),
              {"/config.json", "wrong JSON", "an object", "an array"}),
      config_case("NegativeEndToken",
                  [](json& root, json&) {
                    root["eos_token_id"] = {3, -1};
                  },
                  {"/config.json: eos_token_id", "wrong value", "token ids", "-1"}),
      damaged("BrokenGenerationConfig", replace_file("generation_config.json", "{\"eos_token_id\": \"x\"}"),
              {"/generation_config.json: eos_token_id", "wrong value", "token ids", "\"x\""}),
  };
}

std::vector<Malformed> architecture_cases() {
  const std::string text = "/config.json: text_config: ";
  return {
      config_case("TextConfigNoObject", [](json& root, json&) { root["text_config"] = 1; },
                  {"/config.json: text_config", "wrong value", "an object", "a number"}),
      config_case(
          "OtherArchitecture", [](json& root, json&) { root["model_type"] = "qwen3_next"; },
          {"/config.json: model_type", "architecture not supported", "qwen3_5_moe or qwen3_5", "\"qwen3_next\""}),
      config_case("NoArchitecture", [](json& root, json& t) { root.erase("model_type"), t.erase("model_type"); },
                  {"/config.json: model_type", "architecture not supported", "qwen3_5_moe or qwen3_5", "none"}),
      config_case("MissingHiddenSize", [](json&, json& t) { t.erase("hidden_size"); },
                  {text + "hidden_size", "missing", "an integer from 1 to 131072", ""}),
      config_case("ZeroHiddenSize", [](json&, json& t) { t["hidden_size"] = 0; },
                  {text + "hidden_size", "wrong value", "an integer from 1 to 131072", "0"}),
      config_case("NegativeVocabulary", [](json&, json& t) { t["vocab_size"] = -5; },
                  {text + "vocab_size", "wrong value", "an integer from 1 to 4194304", "-5"}),
      config_case("HugeHeads", [](json&, json& t) { t["num_attention_heads"] = uint64_t{1} << 63; },
                  {text + "num_attention_heads", "wrong value", "an integer from 1 to 1024", "9223372036854775808"}),
      config_case("FractionalLayers", [](json&, json& t) { t["num_hidden_layers"] = 4.5; },
                  {text + "num_hidden_layers", "wrong value", "an integer from 1 to 1024", "4.5"}),
      config_case("StringHeadDim", [](json&, json& t) { t["head_dim"] = "32"; },
                  {text + "head_dim", "wrong value", "an integer from 1 to 1024", "\"32\""}),
      config_case("HeadsNotDivisible",
                  [](json&, json& t) { t["num_attention_heads"] = 3, t["num_key_value_heads"] = 2; },
                  {text + "num_attention_heads", "not divisible by num_key_value_heads", "a multiple of 2", "3"}),
      config_case("ValueHeadsNotDivisible",
                  [](json&, json& t) { t["linear_num_value_heads"] = 3, t["linear_num_key_heads"] = 2; },
                  {text + "linear_num_value_heads", "not divisible by linear_num_key_heads", "a multiple of 2", "3"}),
      config_case("TopKAboveExperts", [](json&, json& t) { t["num_experts_per_tok"] = 5; },
                  {text + "num_experts_per_tok", "more than num_experts", "at most 4", "5"}),
      config_case("ConvolutionOfOneTap", [](json&, json& t) { t["linear_conv_kernel_dim"] = 1; },
                  {text + "linear_conv_kernel_dim", "wrong value", "an integer from 2 to 64", "1"}),
  };
}

std::vector<Malformed> attention_cases() {
  const std::string text = "/config.json: text_config: ";
  return {
      config_case("Yarn", [](json&, json& t) { t["rope_parameters"]["rope_type"] = "yarn"; },
                  {text + "rope_parameters: rope_type", "not supported", "\"default\"", "\"yarn\""}),
      config_case("OldYarn",
                  [](json&, json& t) {
                    t["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}};
                  },
                  {text + "rope_scaling: type", "not supported", "\"default\"", "\"yarn\""}),
      config_case("OddRotaryDimensions",
                  [](json&, json& t) { t["rope_parameters"]["partial_rotary_factor"] = 3.0 / 32; },
                  {text + "partial_rotary_factor", "rotary dimensions not a positive even number",
                   "head_dim times the factor even", "3"}),
      config_case(
          "RotaryFactorAboveOne", [](json&, json& t) { t["rope_parameters"]["partial_rotary_factor"] = 1.5; },
          {text + "rope_parameters: partial_rotary_factor", "wrong value", "a number above 0, at most 1.0", "1.5"}),
      config_case("NoTheta", [](json&, json& t) { t["rope_parameters"].erase("rope_theta"); },
                  {text + "rope_parameters: rope_theta", "missing", "a number", ""}),
      config_case("NoOutputGate", [](json&, json& t) { t["attn_output_gate"] = false; },
                  {text + "attn_output_gate", "not supported", "true", "false"}),
      config_case("AttentionBias", [](json&, json& t) { t["attention_bias"] = true; },
                  {text + "attention_bias", "not supported", "false", "true"}),
      config_case("Gelu", [](json&, json& t) { t["hidden_act"] = "gelu"; },
                  {text + "hidden_act", "not supported", "\"silu\"", "\"gelu\""}),
      config_case("LayerTypesTooShort", [](json&, json& t) { t["layer_types"].erase(0); },
                  {text + "layer_types", "wrong length", "4 entries", "3"}),
      config_case(
          "UnknownLayerType", [](json&, json& t) { t["layer_types"][1] = "sliding_attention"; },
          {text + "layer_types", "unknown layer type", "linear_attention or full_attention", "\"sliding_attention\""}),
      config_case("NoLayerTypes", [](json&, json& t) { t.erase("layer_types"); },
                  {text + "full_attention_interval", "missing", "an integer from 1 to 1024", ""}),
  };
}

std::vector<Malformed> quantization_cases() {
  const std::string quantization = "/config.json: quantization: ";
  return {
      config_case("Mxfp4", [](json& root, json&) { root["quantization"]["mode"] = "mxfp4"; },
                  {quantization + "mode", "quantisation not supported", "\"affine\"", "\"mxfp4\""}),
      config_case("Mxfp4InOneModule",
                  [](json& root, json&) {
                    root["quantization"][layer0 + "mlp.gate"] = {{"mode", "nvfp4"}, {"bits", 4}, {"group_size", 32}};
                  },
                  {quantization + layer0 + "mlp.gate: mode", "quantisation not supported", "\"affine\"", "\"nvfp4\""}),
      config_case("SevenBits", [](json& root, json&) { root["quantization"]["bits"] = 7; },
                  {quantization + "bits", "quantisation not supported", "2, 3, 4, 5, 6 or 8", "7"}),
      config_case("GroupSize48", [](json& root, json&) { root["quantization"]["group_size"] = 48; },
                  {quantization + "group_size", "quantisation not supported", "32, 64 or 128", "48"}),
      config_case(
          "LD_06_Fp8",
          [](json& root, json&) {
            root.erase("quantization");
            root["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
          },
          {quantization + "quant_method", "quantisation not supported", "MLX affine (bits, group_size)", "\"fp8\""}),
      config_case(
          "Awq", [](json& root, json&) { root["quantization"]["quant_method"] = "awq"; },
          {quantization + "quant_method", "quantisation not supported", "MLX affine (bits, group_size)", "\"awq\""}),
      config_case(
          "LD_05_ContradictingOverrides",
          [](json& root, json&) {
            root["quantization"]["model.layers.0.mlp.gate"] = {{"bits", 4}, {"group_size", 32}};
          },
          {quantization + "model.layers.0.mlp.gate", "contradicts the same module under another prefix", "", ""}),
  };
}

class MalformedConfig : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedConfig, IsOneExactError) { expect_one_error(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, MalformedConfig,
                         all_of({json_cases(), architecture_cases(), attention_cases(), quantization_cases()}),
                         name_of_case);

}  // namespace
}  // namespace lily::test
