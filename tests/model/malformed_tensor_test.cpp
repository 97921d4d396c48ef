// Missing, unknown, mis-shaped and non-finite tensors, and quantisation that contradicts config.json.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/malformed.h"

namespace lily::test {
namespace {

const std::string file_layer0 = "/model.safetensors: " + layer0;

void set_bf16(test::TestTensor& tensor, size_t element, float value) {
  tensor.as<uint16_t>()[element] = float_to_bf16(value);
}

std::vector<Malformed> name_cases() {
  return {
      spoiled("MissingNorm", [](TestModel& m) { m.tensors.erase("language_model.model.norm.weight"); },
              {": language_model.model.norm.weight", "tensor is missing", "", ""}),
      spoiled("MissingHead",
              [](TestModel& m) {
                for (const char* part : {"weight", "scales", "biases"})
                  m.tensors.erase(std::string("language_model.lm_head.") + part);
              },
              {": language_model.lm_head.weight", "tensor is missing", "", ""}),
      spoiled("UnknownTensor", [](TestModel& m) { m.rename(layer0 + "mlp.gate.biases", layer0 + "mlp.gate.bias"); },
              {": " + layer0 + "mlp.gate.biases", "tensor is missing", "", ""}),
      spoiled(
          "ExtraTensor",
          [](TestModel& m) { m.tensors["language_model.model.layers.9.x"] = m.layer_tensor(0, "linear_attn.A_log"); },
          {"/model.safetensors: language_model.model.layers.9.x", "unknown tensor", "only tensors of qwen3_5_moe",
           "BF16 [2]"}),
      spoiled("NameWithControlCharacters",
              [](TestModel& m) { m.tensors["x\n\x1b[2J"] = m.layer_tensor(0, "linear_attn.A_log"); },
              {"/model.safetensors: x\n\x1b[2J", "unknown tensor", "only tensors of qwen3_5_moe", "BF16 [2]"}),
      spoiled("TwoPrefixes",
              [](TestModel& m) { m.tensors["model.norm.weight"] = m.tensors.at("language_model.model.norm.weight"); },
              {"/model.safetensors: language_model.model.norm.weight", "the same tensor under another prefix",
               "one of them", "model.norm.weight"}),
  };
}

std::vector<Malformed> shape_cases() {
  const std::string a_scales = layer0 + "linear_attn.in_proj_a.scales";
  return {
      spoiled("NormOfWrongLength",
              [](TestModel& m) {
                m.layer_tensor(0, "input_layernorm.weight") = {DType::bf16, {63}, std::vector<std::byte>(126)};
              },
              {file_layer0 + "input_layernorm.weight", "wrong shape or dtype", "F32, F16 or BF16 [64]", "BF16 [63]"}),
      spoiled("NormOfIntegers",
              [](TestModel& m) {
                m.layer_tensor(0, "input_layernorm.weight") = {DType::i32, {64}, std::vector<std::byte>(256)};
              },
              {file_layer0 + "input_layernorm.weight", "wrong shape or dtype", "F32, F16 or BF16 [64]", "I32 [64]"}),
      spoiled("RowsMissing",
              [](TestModel& m) {
                m.layer_tensor(0, "mlp.gate.weight") = {DType::u32, {3, 16}, std::vector<std::byte>(192)};
              },
              {file_layer0 + "mlp.gate.weight", "wrong shape or dtype", "U32, packed from [4, 64]", "U32 [3, 16]"}),
      spoiled("PackedAsBytes",
              [](TestModel& m) {
                m.layer_tensor(0, "mlp.gate.weight") = {DType::u8, {4, 64}, std::vector<std::byte>(256)};
              },
              {file_layer0 + "mlp.gate.weight", "wrong shape or dtype", "U32, packed from [4, 64]", "U8 [4, 64]"}),
      spoiled("NoScales", [=](TestModel& m) { m.tensors.erase(a_scales); },
              {file_layer0 + "linear_attn.in_proj_a.weight", "quantised matrix without .scales",
               "F32, F16 or BF16 [2, 64]", "U32 [2, 8]"}),
      spoiled("ScalesOfIntegers",
              [=](TestModel& m) {
                m.tensors.at(a_scales) = {DType::u8, {2, 2}, std::vector<std::byte>(4)};
              },
              {file_layer0 + "linear_attn.in_proj_a.scales", "wrong shape or dtype",
               "F32, F16 or BF16, one for a group of [2, 64]", "U8 [2, 2]"}),
      spoiled("BiasesDiffer",
              [](TestModel& m) {
                m.layer_tensor(0, "linear_attn.in_proj_a.biases") = {DType::f32, {2, 2}, std::vector<std::byte>(16)};
              },
              {file_layer0 + "linear_attn.in_proj_a.biases", "differs from .scales", "BF16 [2, 2]", "F32 [2, 2]"}),
  };
}

std::vector<Malformed> layout_cases() {
  return {
      spoiled(
          "MixedConvolutionLayouts",
          [](TestModel& m) {
            m.layer_tensor(1, "linear_attn.conv1d.weight").shape = {128, 1, 4};
          },
          {"/model.safetensors: language_model.model.layers.1.linear_attn.conv1d.weight",
           "conv1d layouts are mixed, so norms cannot be read", "the layout of the layers before", "BF16 [128, 1, 4]"}),
      spoiled("ConvolutionOfWrongShape",
              [](TestModel& m) {
                m.layer_tensor(0, "linear_attn.conv1d.weight").shape = {128, 4};
              },
              {file_layer0 + "linear_attn.conv1d.weight", "wrong shape",
               "[128, 4, 1] (MLX) or [128, 1, 4] (Hugging Face)", "BF16 [128, 4]"}),
      spoiled("NoLinearLayer",
              [](TestModel& m) { m.text_config()["layer_types"] = std::vector<std::string>(4, "full_attention"); },
              {": language_model.model.layers", "no linear_attention layer: nothing tells raw norms from folded ones",
               "one", "none"}),
      spoiled("LD_06_ExpertsOneByOne",
              [](TestModel& m) {
                m.rename(layer0 + "mlp.switch_mlp.gate_proj.weight", layer0 + "mlp.experts.0.gate_proj.weight");
              },
              {file_layer0 + "mlp.experts.0.gate_proj.weight", "one tensor an expert is not supported",
               "experts.gate_up_proj or switch_mlp.gate_proj", "experts.0.gate_proj"}),
  };
}

std::vector<Malformed> quantization_cases() {
  return {
      spoiled("NoColumns",
              [](TestModel& m) {
                m.config["quantization"][layer0 + "mlp.gate"] = false;
                m.layer_tensor(0, "mlp.gate.weight") = {DType::u32, {4, 0}, {}};
                m.layer_tensor(0, "mlp.gate.scales") = {DType::bf16, {4, 0}, {}};
                m.layer_tensor(0, "mlp.gate.biases") = {DType::bf16, {4, 0}, {}};
              },
              {file_layer0 + "mlp.gate.weight", "quantisation contradicts config.json", "not quantised for [4, 64]",
               "U32 [4, 0] with scales [4, 0]"}),
      spoiled("LD_05_BitsContradictConfig", [](TestModel& m) { m.config["quantization"].erase(layer0 + "mlp.gate"); },
              {file_layer0 + "mlp.gate.weight", "quantisation contradicts config.json",
               "4 bits, group size 32 for [4, 64]", "8 bits, group size 32"}),
      spoiled("GroupSizeContradictsConfig", [](TestModel& m) { m.config["quantization"]["group_size"] = 64; },
              {"/model.safetensors: language_model.model.embed_tokens.weight", "quantisation contradicts config.json",
               "4 bits, group size 64 for [96, 64]", "4 bits, group size 32"}),
      spoiled("GroupSizeAboveColumns", [](TestModel& m) { m.config["quantization"]["group_size"] = 128; },
              {"/model.safetensors: language_model.model.embed_tokens.weight", "group size does not divide the columns",
               "a divisor of 64", "128"}),
      spoiled("QuantizedWithoutConfig", [](TestModel& m) { m.config.erase("quantization"); },
              {"/model.safetensors: language_model.model.embed_tokens.weight", "quantisation contradicts config.json",
               "not quantised for [96, 64]", "4 bits, group size 32"}),
      spoiled("LD_05_QuantizedAgainstOverride",
              [](TestModel& m) { m.config["quantization"][layer0 + "mlp.gate"] = false; },
              {file_layer0 + "mlp.gate.weight", "quantisation contradicts config.json", "not quantised for [4, 64]",
               "8 bits, group size 32"}),
      spoiled("FloatAgainstOverride",
              [](TestModel& m) {
                m.tensors.erase(layer0 + "mlp.gate.scales"), m.tensors.erase(layer0 + "mlp.gate.biases");
                m.layer_tensor(0, "mlp.gate.weight") = {DType::bf16, {4, 64}, std::vector<std::byte>(512)};
              },
              {file_layer0 + "mlp.gate.weight", "quantised by config.json but without .scales", "8 bits, group size 32",
               "no .scales"}),
  };
}

std::vector<Malformed> value_cases() {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  const std::string a_scales = layer0 + "linear_attn.in_proj_a.scales";
  const auto finite = [](const std::string& tensor, const std::string& element, const std::string& got) {
    return Error{file_layer0 + tensor, "not a finite number at element " + element, "finite values", got};
  };
  return {
      spoiled(
          "NanInNorm", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "input_layernorm.weight"), 5, nan); },
          finite("input_layernorm.weight", "5", "NaN")),
      spoiled(
          "InfinityInDecay", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.A_log"), 1, -infinity); },
          finite("linear_attn.A_log", "1", "infinity")),
      spoiled(
          "NanInTimeStep", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.dt_bias"), 0, nan); },
          finite("linear_attn.dt_bias", "0", "NaN")),
      spoiled(
          "NanInConvolution", [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.conv1d.weight"), 7, nan); },
          finite("linear_attn.conv1d.weight", "7", "NaN")),
      spoiled(
          "NanInScales", [=](TestModel& m) { set_bf16(m.tensors.at(a_scales), 3, nan); },
          finite("linear_attn.in_proj_a.scales", "3", "NaN")),
      spoiled(
          "InfinityInBiases",
          [=](TestModel& m) { set_bf16(m.layer_tensor(0, "linear_attn.in_proj_a.biases"), 2, infinity); },
          finite("linear_attn.in_proj_a.biases", "2", "infinity")),
  };
}

class MalformedTensor : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedTensor, IsOneExactError) { expect_one_error(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, MalformedTensor,
                         all_of({name_cases(), shape_cases(), layout_cases(), quantization_cases(), value_cases()}),
                         name_of_case);

}  // namespace
}  // namespace lily::test
