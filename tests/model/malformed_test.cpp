// One spoiled place in a valid checkpoint: one exact error, and `lily inspect` says it in one line and exits with 2.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "model/weights.h"
#include "support/run_lily.h"
#include "support/test_model.h"

namespace lily {
namespace {

using nlohmann::json;
using test::read_text;
using test::TemporaryDirectory;
using test::TestModel;
using test::write_text;

const std::string layer0 = "language_model.model.layers.0.";
const std::string file_layer0 = "/model.safetensors: " + layer0;

struct Case {
  std::string name;
  std::function<void(TestModel&)> spoil;                 // before the files are written
  std::function<void(const std::string& dir)> damage;    // to the written files
  Error expected;                                        // `where` and, after '@', others start with the folder
  bool sharded = false;
};

Case config_case(std::string name, std::function<void(json& root, json& text)> change, Error expected) {
  return {std::move(name), [change](TestModel& m) { change(m.config, m.text_config()); }, nullptr, std::move(expected)};
}
Case tensor_case(std::string name, std::function<void(TestModel&)> spoil, Error expected) {
  return {std::move(name), std::move(spoil), nullptr, std::move(expected)};
}
Case file_case(std::string name, std::function<void(const std::string&)> damage, Error expected, bool sharded = false) {
  return {std::move(name), nullptr, std::move(damage), std::move(expected), sharded};
}

// Replaces the header of model.safetensors after `change`.
std::function<void(const std::string&)> header(std::function<void(json&)> change) {
  return [change](const std::string& dir) {
    const std::string path = dir + "/model.safetensors", file = read_text(path);
    const auto length = load_unaligned<uint64_t>(file.data());
    json object = json::parse(file.substr(8, length));
    change(object);
    const std::string text = object.dump();
    const uint64_t new_length = text.size();
    write_text(path, std::string(reinterpret_cast<const char*>(&new_length), 8) + text + file.substr(8 + length));
  };
}
std::function<void(const std::string&)> bytes(std::function<void(std::string&)> change) {
  return [change](const std::string& dir) {
    std::string file = read_text(dir + "/model.safetensors");
    change(file);
    write_text(dir + "/model.safetensors", file);
  };
}
std::function<void(const std::string&)> index(std::function<void(json&)> change) {
  return [change](const std::string& dir) {
    json object = json::parse(read_text(dir + "/model.safetensors.index.json"));
    change(object);
    write_text(dir + "/model.safetensors.index.json", object.dump());
  };
}
std::function<void(const std::string&)> text_file(const std::string& name, const std::string& text) {
  return [=](const std::string& dir) { write_text(dir + "/" + name, text); };
}

std::vector<Case> config_cases() {
  const std::string text = "/config.json: text_config: ", quantization = "/config.json: quantization: ";
  return {
      file_case("NoConfig", [](auto& dir) { std::filesystem::remove(dir + "/config.json"); },
                {"/config.json", "cannot open: No such file or directory"}),
      file_case("NotJson", text_file("config.json", "{\"a\": 1,}"),
                {"/config.json", "not valid JSON", "", "a syntax error at byte 9"}),
      file_case("EmptyConfig", text_file("config.json", ""), {"/config.json", "not valid JSON", "", "a syntax error at byte 1"}),
      file_case("InvalidUtf8", text_file("config.json", "{\"a\": \"\xff\"}"),
                {"/config.json", "not valid JSON", "", "a syntax error at byte 8"}),
      file_case("DuplicateKey", text_file("config.json", R"({"model_type": "qwen3_5", "x": {"y": 1, "y": 2}})"),
                {"/config.json", "duplicate JSON key", "each key once", "y"}),
      file_case("DeepNesting", text_file("config.json", std::string(100000, '[')),
                {"/config.json", "JSON nested too deeply", "32 levels at most", ""}),
      file_case("HugeNumber", text_file("config.json", "{\"a\": 1e999}"),
                {"/config.json", "not valid JSON", "numbers within the range of a double", "one outside it"}),
      file_case("ArrayConfig", text_file("config.json", "[]"), {"/config.json", "wrong JSON", "an object", "an array"}),
      config_case("TextConfigNoObject", [](json& root, json&) { root["text_config"] = 1; },
                  {"/config.json: text_config", "wrong value", "an object", "a number"}),
      config_case("OtherArchitecture", [](json& root, json&) { root["model_type"] = "qwen3_next"; },
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
      config_case("HeadsNotDivisible", [](json&, json& t) { t["num_attention_heads"] = 3, t["num_key_value_heads"] = 2; },
                  {text + "num_attention_heads", "not divisible by num_key_value_heads", "a multiple of 2", "3"}),
      config_case("ValueHeadsNotDivisible", [](json&, json& t) { t["linear_num_value_heads"] = 3, t["linear_num_key_heads"] = 2; },
                  {text + "linear_num_value_heads", "not divisible by linear_num_key_heads", "a multiple of 2", "3"}),
      config_case("TopKAboveExperts", [](json&, json& t) { t["num_experts_per_tok"] = 5; },
                  {text + "num_experts_per_tok", "more than num_experts", "at most 4", "5"}),
      config_case("ConvolutionOfOneTap", [](json&, json& t) { t["linear_conv_kernel_dim"] = 1; },
                  {text + "linear_conv_kernel_dim", "wrong value", "an integer from 2 to 64", "1"}),
      config_case("Yarn", [](json&, json& t) { t["rope_parameters"]["rope_type"] = "yarn"; },
                  {text + "rope_parameters: rope_type", "not supported", "\"default\"", "\"yarn\""}),
      config_case("OldYarn", [](json&, json& t) { t["rope_scaling"] = {{"type", "yarn"}, {"factor", 4.0}}; },
                  {text + "rope_scaling: type", "not supported", "\"default\"", "\"yarn\""}),
      config_case("OddRotaryDimensions", [](json&, json& t) { t["rope_parameters"]["partial_rotary_factor"] = 3.0 / 32; },
                  {text + "partial_rotary_factor", "rotary dimensions not a positive even number",
                   "head_dim times the factor even", "3"}),
      config_case("RotaryFactorAboveOne", [](json&, json& t) { t["rope_parameters"]["partial_rotary_factor"] = 1.5; },
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
      config_case("UnknownLayerType", [](json&, json& t) { t["layer_types"][1] = "sliding_attention"; },
                  {text + "layer_types", "unknown layer type", "linear_attention or full_attention", "\"sliding_attention\""}),
      config_case("NoLayerTypes", [](json&, json& t) { t.erase("layer_types"); },
                  {text + "full_attention_interval", "missing", "an integer from 1 to 1024", ""}),
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
      config_case("Fp8",
                  [](json& root, json&) {
                    root.erase("quantization");
                    root["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
                  },
                  {quantization + "quant_method", "quantisation not supported", "MLX affine (bits, group_size)", "\"fp8\""}),
      config_case("ContradictingOverrides",
                  [](json& root, json&) {
                    root["quantization"]["model.layers.0.mlp.gate"] = {{"bits", 4}, {"group_size", 32}};
                  },
                  {quantization + "model.layers.0.mlp.gate", "contradicts the same module under another prefix", "", ""}),
      config_case("NegativeEndToken", [](json& root, json&) { root["eos_token_id"] = {3, -1}; },
                  {"/config.json: eos_token_id", "wrong value", "token ids", "-1"}),
      file_case("BrokenGenerationConfig", text_file("generation_config.json", "{\"eos_token_id\": \"x\"}"),
                {"/generation_config.json: eos_token_id", "wrong value", "token ids", "\"x\""}),
  };
}

std::vector<Case> file_cases() {
  const std::string file = "/model.safetensors", norm = "language_model.model.norm.weight";
  const std::string gate = "language_model.model.layers.0.mlp.gate.biases";
  return {
      file_case("NoTensors", [=](auto& dir) { std::filesystem::remove(dir + file); },
                {file, "cannot open: No such file or directory"}),
      file_case("EmptyFile", bytes([](std::string& f) { f.clear(); }),
                {file, "truncated: no header", "at least 8 bytes", "0 bytes"}),
      file_case("CutInsideTheHeader", bytes([](std::string& f) { f.resize(100), f[1] = 0x10, f[0] = 0; }),
                {file, "truncated inside the header", "4104 bytes", "100 bytes (4004 bytes missing)"}),
      file_case("HugeHeaderLength", bytes([](std::string& f) { f.replace(0, 8, 8, '\xff'); }),
                {file, "header length", "at most 100000000 bytes", "18446744073709551615 bytes"}),
      file_case("HeaderNoObject", bytes([](std::string& f) { f = std::string("\2\0\0\0\0\0\0\0[]", 10); }),
                {file, "header", "a JSON object", "an array"}),
      file_case("HeaderNoJson", bytes([](std::string& f) { f[8] = 'x'; }),
                {file, "not valid JSON", "", "a syntax error at byte 1"}),
      file_case("TensorTwice",
                bytes([](std::string& f) {
                  f = std::string("\x1c\0\0\0\0\0\0\0", 8) + R"({"a.weight":{},"a.weight":{}})";
                }),
                {file, "duplicate JSON key", "each key once", "a.weight"}),
      file_case("CutByOneByte", bytes([](std::string& f) { f.pop_back(); }),
                {"@last", "file truncated", "@size", "@missing 1"}),
      file_case("CutByOnePage", bytes([](std::string& f) { f.resize(f.size() - 4096); }),
                {"@last", "file truncated", "@size", "@missing 4096"}),
      file_case("BytesAfterTheEnd", bytes([](std::string& f) { f += "abc"; }),
                {file, "data after the last tensor", "@size", "@extra 3"}),
      file_case("OffsetsBackwards", header([=](json& h) { h[norm]["data_offsets"] = {128, 0}; }),
                {file + ": " + norm, "data_offsets do not fit the shape", "128 bytes for BF16 [64]", "[128, 0]"}),
      file_case("OffsetsNegative", header([=](json& h) { h[norm]["data_offsets"] = {-128, 0}; }),
                {file + ": " + norm, "data_offsets", "two byte offsets", "an array"}),
      file_case("OffsetsOutOfRange",
                header([=](json& h) { h[norm]["data_offsets"] = {uint64_t{1} << 60, (uint64_t{1} << 60) + 128}; }),
                {"@gap", "gap before the tensor"}),
      file_case("OverlappingTensors", header([=](json& h) { h[norm]["data_offsets"] = {0, 128}; }),
                {"@overlap", "overlaps the tensor before it"}),
      file_case("ShapeOverflows", header([=](json& h) { h[norm]["shape"] = {int64_t{1} << 40, int64_t{1} << 40}; }),
                {file + ": " + norm, "shape", "sizes whose product fits 63 bits", "[1099511627776,1099511627776]"}),
      file_case("NegativeShape", header([=](json& h) { h[norm]["shape"] = {-64}; }),
                {file + ": " + norm, "shape", "sizes whose product fits 63 bits", "[-64]"}),
      file_case("UnknownDtype", header([=](json& h) { h[norm]["dtype"] = "F4"; }),
                {file + ": " + norm, "unknown dtype", "a safetensors dtype", "\"F4\""}),
      file_case("EntryWithoutShape", header([=](json& h) { h[norm].erase("shape"); }),
                {file + ": " + norm, "header entry", "dtype, shape and data_offsets", "an entry without them"}),
      file_case("EntryNoObject", header([=](json& h) { h[norm] = 7; }),
                {file + ": " + norm, "header entry", "dtype, shape and data_offsets", "an entry without them"}),
  };
}

std::vector<Case> shard_cases() {
  const std::string index_file = "/model.safetensors.index.json";
  const std::string first = "model-00001-of-00002.safetensors", second = "model-00002-of-00002.safetensors";
  const std::string norm = "language_model.model.norm.weight";
  return {
      file_case("MissingShard", [=](auto& dir) { std::filesystem::remove(dir + "/" + second); },
                {index_file, "shards missing from @", "2 files", "1 (missing: " + second + ")"}, true),
      file_case("ShardOutsideTheFolder", index([=](json& i) { i["weight_map"][norm] = "../" + first; }),
                {index_file + ": " + norm, "shard name", "a plain .safetensors file name", "\"../" + first + "\""}, true),
      file_case("ShardNoString", index([=](json& i) { i["weight_map"][norm] = 5; }),
                {index_file + ": " + norm, "shard name", "a plain .safetensors file name", "5"}, true),
      file_case("TensorNotInIndex", index([=](json& i) { i["weight_map"].erase(norm); }),
                {"/" + first + ": " + norm, "tensor is not in the index", "", ""}, true),
      file_case("TensorNotInShard", index([=](json& i) { i["weight_map"]["lm_head.weight"] = second; }),
                {"/" + second + ": lm_head.weight", "tensor is in the index but not in its shard", "", ""}, true),
      file_case("TensorInOtherShard", index([=](json& i) { i["weight_map"][norm] = second; }),
                {"/" + first + ": " + norm, "tensor is in another shard than the index says", second, first}, true),
      file_case("NoWeightMap", index([=](json& i) { i.erase("weight_map"); }),
                {index_file + ": weight_map", "wrong value", "an object from tensor names to shards", "none"}, true),
      file_case("IndexNoObject", text_file("model.safetensors.index.json", "3"),
                {index_file, "wrong JSON", "an object", "a number"}, true),
  };
}

void set_bf16(test::TestTensor& tensor, size_t element, float value) {
  tensor.as<uint16_t>()[element] = float_to_bf16(value);
}

std::vector<Case> tensor_cases() {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::string a_scales = layer0 + "linear_attn.in_proj_a.scales";
  const auto finite = [](const std::string& tensor, const std::string& element, const std::string& got) {
    return Error{file_layer0 + tensor, "not a finite number at element " + element, "finite values", got};
  };
  return {
      tensor_case("MissingNorm", [](TestModel& m) { m.tensors.erase("language_model.model.norm.weight"); },
                  {": language_model.model.norm.weight", "tensor is missing", "", ""}),
      tensor_case("MissingHead", [](TestModel& m) {
                    for (const char* part : {"weight", "scales", "biases"}) m.tensors.erase(std::string("language_model.lm_head.") + part);
                  },
                  {": language_model.lm_head.weight", "tensor is missing", "", ""}),
      tensor_case("UnknownTensor", [](TestModel& m) { m.rename(layer0 + "mlp.gate.biases", layer0 + "mlp.gate.bias"); },
                  {": " + layer0 + "mlp.gate.biases", "tensor is missing", "", ""}),
      tensor_case("ExtraTensor",
                  [](TestModel& m) { m.tensors["language_model.model.layers.9.x"] = m.layer_tensor(0, "linear_attn.A_log"); },
                  {"/model.safetensors: language_model.model.layers.9.x", "unknown tensor", "only tensors of qwen3_5_moe",
                   "BF16 [2]"}),
      tensor_case("TwoPrefixes",
                  [](TestModel& m) { m.tensors["model.norm.weight"] = m.tensors.at("language_model.model.norm.weight"); },
                  {"/model.safetensors: language_model.model.norm.weight", "the same tensor under another prefix",
                   "one of them", "model.norm.weight"}),
      tensor_case("NormOfWrongLength", [](TestModel& m) { m.layer_tensor(0, "input_layernorm.weight") = {DType::bf16, {63}, std::vector<std::byte>(126)}; },
                  {file_layer0 + "input_layernorm.weight", "wrong shape or dtype", "F32, F16 or BF16 [64]", "BF16 [63]"}),
      tensor_case("NormOfIntegers", [](TestModel& m) { m.layer_tensor(0, "input_layernorm.weight") = {DType::i32, {64}, std::vector<std::byte>(256)}; },
                  {file_layer0 + "input_layernorm.weight", "wrong shape or dtype", "F32, F16 or BF16 [64]", "I32 [64]"}),
      tensor_case("RowsMissing", [](TestModel& m) { m.layer_tensor(0, "mlp.gate.weight") = {DType::u32, {3, 16}, std::vector<std::byte>(192)}; },
                  {file_layer0 + "mlp.gate.weight", "wrong shape or dtype", "U32, packed from [4, 64]", "U32 [3, 16]"}),
      tensor_case("PackedAsBytes", [](TestModel& m) { m.layer_tensor(0, "mlp.gate.weight") = {DType::u8, {4, 64}, std::vector<std::byte>(256)}; },
                  {file_layer0 + "mlp.gate.weight", "wrong shape or dtype", "U32, packed from [4, 64]", "U8 [4, 64]"}),
      tensor_case("NoScales",
                  [=](TestModel& m) { m.tensors.erase(a_scales); },
                  {file_layer0 + "linear_attn.in_proj_a.weight", "quantised matrix without .scales", "F32, F16 or BF16 [2, 64]",
                   "U32 [2, 8]"}),
      tensor_case("ScalesOfIntegers", [=](TestModel& m) { m.tensors.at(a_scales) = {DType::u8, {2, 2}, std::vector<std::byte>(4)}; },
                  {file_layer0 + "linear_attn.in_proj_a.scales", "wrong shape or dtype",
                   "F32, F16 or BF16, one for a group of [2, 64]", "U8 [2, 2]"}),
      tensor_case("BiasesDiffer",
                  [](TestModel& m) { m.layer_tensor(0, "linear_attn.in_proj_a.biases") = {DType::f32, {2, 2}, std::vector<std::byte>(16)}; },
                  {file_layer0 + "linear_attn.in_proj_a.biases", "differs from .scales", "BF16 [2, 2]", "F32 [2, 2]"}),
      tensor_case("BitsContradictConfig", [](TestModel& m) { m.config["quantization"].erase(layer0 + "mlp.gate"); },
                  {file_layer0 + "mlp.gate.weight", "quantisation contradicts config.json", "4 bits, group size 32 for [4, 64]",
                   "8 bits, group size 32"}),
      tensor_case("GroupSizeContradictsConfig", [](TestModel& m) { m.config["quantization"]["group_size"] = 64; },
                  {"/model.safetensors: language_model.model.embed_tokens.weight", "quantisation contradicts config.json",
                   "4 bits, group size 64 for [96, 64]", "4 bits, group size 32"}),
      tensor_case("GroupSizeAboveColumns", [](TestModel& m) { m.config["quantization"]["group_size"] = 128; },
                  {"/model.safetensors: language_model.model.embed_tokens.weight", "group size does not divide the columns",
                   "a divisor of 64", "128"}),
      tensor_case("QuantizedWithoutConfig", [](TestModel& m) { m.config.erase("quantization"); },
                  {"/model.safetensors: language_model.model.embed_tokens.weight", "quantisation contradicts config.json",
                   "not quantised for [96, 64]", "4 bits, group size 32"}),
      tensor_case("QuantizedAgainstOverride", [](TestModel& m) { m.config["quantization"][layer0 + "mlp.gate"] = false; },
                  {file_layer0 + "mlp.gate.weight", "quantisation contradicts config.json", "not quantised for [4, 64]",
                   "8 bits, group size 32"}),
      tensor_case("FloatAgainstOverride",
                  [](TestModel& m) {
                    m.tensors.erase(layer0 + "mlp.gate.scales"), m.tensors.erase(layer0 + "mlp.gate.biases");
                    m.layer_tensor(0, "mlp.gate.weight") = {DType::bf16, {4, 64}, std::vector<std::byte>(512)};
                  },
                  {file_layer0 + "mlp.gate.weight", "quantised by config.json but without .scales", "8 bits, group size 32",
                   "no .scales"}),
      tensor_case("NanInNorm", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "input_layernorm.weight"), 5, nan); },
                  finite("input_layernorm.weight", "5", "NaN")),
      tensor_case("InfinityInDecay", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.A_log"), 1, -infinity); },
                  finite("linear_attn.A_log", "1", "infinity")),
      tensor_case("NanInTimeStep", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.dt_bias"), 0, nan); },
                  finite("linear_attn.dt_bias", "0", "NaN")),
      tensor_case("NanInConvolution", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.conv1d.weight"), 7, nan); },
                  finite("linear_attn.conv1d.weight", "7", "NaN")),
      tensor_case("NanInScales", [=](TestModel& m) { set_bf16(m.tensors.at(a_scales), 3, nan); },
                  finite("linear_attn.in_proj_a.scales", "3", "NaN")),
      tensor_case("InfinityInBiases",
                  [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.in_proj_a.biases"), 2, infinity); },
                  finite("linear_attn.in_proj_a.biases", "2", "infinity")),
      tensor_case("MixedConvolutionLayouts", [](TestModel& m) { m.layer_tensor(1, "linear_attn.conv1d.weight").shape = {128, 1, 4}; },
                  {"/model.safetensors: language_model.model.layers.1.linear_attn.conv1d.weight",
                   "conv1d layouts are mixed, so norms cannot be read", "the layout of the layers before", "BF16 [128, 1, 4]"}),
      tensor_case("ConvolutionOfWrongShape", [](TestModel& m) { m.layer_tensor(0, "linear_attn.conv1d.weight").shape = {128, 4}; },
                  {file_layer0 + "linear_attn.conv1d.weight", "wrong shape", "[128, 4, 1] (MLX) or [128, 1, 4] (Hugging Face)",
                   "BF16 [128, 4]"}),
      tensor_case("NoLinearLayer",
                  [](TestModel& m) { m.text_config()["layer_types"] = std::vector<std::string>(4, "full_attention"); },
                  {": language_model.model.layers", "no linear_attention layer: nothing tells raw norms from folded ones", "one",
                   "none"}),
      tensor_case("ExpertsOneByOne",
                  [](TestModel& m) {
                    m.rename(layer0 + "mlp.switch_mlp.gate_proj.weight", layer0 + "mlp.experts.0.gate_proj.weight");
                  },
                  {file_layer0 + "mlp.experts.0.gate_proj.weight", "one tensor an expert is not supported",
                   "experts.gate_up_proj or switch_mlp.gate_proj", "experts.0.gate_proj"}),
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& cases : {config_cases(), file_cases(), shard_cases(), tensor_cases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

Result<void> load(const std::string& directory) {
  LILY_TRY(const Checkpoint checkpoint, Checkpoint::open(directory));
  LILY_TRY(const ModelWeights weights, bind_weights(checkpoint));
  return {};
}

class Malformed : public testing::TestWithParam<Case> {};

TEST_P(Malformed, IsOneExactError) {
  const Case& c = GetParam();
  const TemporaryDirectory directory;
  TestModel model;
  if (c.spoil) c.spoil(model);
  c.sharded ? model.write_sharded(directory.path()) : model.write(directory.path());
  if (c.damage) c.damage(directory.path());

  const Result<void> loaded = load(directory.path());
  ASSERT_FALSE(loaded);
  const Error& error = loaded.error();
  EXPECT_EQ(error.where, directory.path() + c.expected.where);
  EXPECT_EQ(error.what, c.expected.what);
  EXPECT_EQ(error.expected, c.expected.expected);
  EXPECT_EQ(error.got, c.expected.got);

  const test::ProgramRun run = test::run_lily("inspect " + directory.path());
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "lily: " + error.message() + "\n");
  EXPECT_EQ(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(All, Malformed, testing::ValuesIn(all_cases()), [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace lily
