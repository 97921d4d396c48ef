// quantize_row against MLX, and whole checkpoints through quantize_checkpoint.
#include "model/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/mapped_file.h"
#include "model/checkpoint.h"
#include "model/weights.h"
#include "support/bound_model.h"
#include "support/oracle.h"
#include "support/temporary_directory.h"
#include "support/test_model.h"

namespace lily {
namespace {

using test::BoundModel;
using test::open_and_bind;

class MlxGolden : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  void SetUp() override {
    auto file = MappedFile::open(LILY_SOURCE_DIR "/tests/model/golden/mlx_quantize.safetensors");
    ASSERT_TRUE(file) << file.error().message();
    file_ = std::move(*file);
    auto tensors = parse_safetensors(file_.bytes(), file_.path());
    ASSERT_TRUE(tensors) << tensors.error().message();
    tensors_ = std::move(*tensors);
  }

  const Tensor& golden(const std::string& part) {
    const auto [bits, group] = GetParam();
    return tensors_.at(std::to_string(bits) + "bit.group" + std::to_string(group) + "." + part);
  }

  MappedFile file_;
  TensorMap tensors_;
};

TEST_P(MlxGolden, QuantizesToTheSameBits) {
  const auto [bits, group] = GetParam();
  const Tensor& w = tensors_.at("w");
  const int64_t rows = w.shape[0], cols = w.shape[1], groups = cols / group;
  std::vector<float> row(cols);
  std::vector<std::byte> codes(cols * bits / 8);
  std::vector<uint16_t> scales(groups), biases(groups);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < cols; ++i) row[i] = load_as_float(w.data, w.dtype, r * cols + i);
    quantize_row(row, {bits, group}, codes.data(), scales.data(), biases.data());
    EXPECT_EQ(std::memcmp(codes.data(), golden("weight").data + r * codes.size(), codes.size()), 0)
        << "codes, row " << r;
    EXPECT_EQ(std::memcmp(scales.data(), golden("scales").data + r * groups * 2, groups * 2), 0) << "scales, row " << r;
    EXPECT_EQ(std::memcmp(biases.data(), golden("biases").data + r * groups * 2, groups * 2), 0) << "biases, row " << r;
  }
}

// MLX dequantises in bf16: the product is rounded, then the sum. Ours is float32, so it lies within those two roundings.
TEST_P(MlxGolden, DequantizesToTheSameValues) {
  const auto [bits, group] = GetParam();
  const Tensor& stored = golden("dequantized");
  const int64_t rows = stored.shape[0], cols = stored.shape[1];
  WeightMatrix matrix{rows, cols, DType::u32, bits, group, DType::bf16};
  matrix.data = golden("weight").data;
  matrix.scales = golden("scales").data;
  matrix.biases = golden("biases").data;
  std::vector<float> row(cols);
  for (int64_t r = 0; r < rows; ++r) {
    matrix.dequantize_row(r, row.data());
    for (int64_t i = 0; i < cols; ++i) {
      const float bias = load_as_float(matrix.biases, DType::bf16, (r * cols + i) / group);
      const float bound = (std::abs(row[i] - bias) + std::abs(row[i])) * 0x1p-8f;
      EXPECT_NEAR(row[i], load_as_float(stored.data, stored.dtype, r * cols + i), bound)
          << "row " << r << ", column " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MlxGolden,
                         testing::Combine(testing::Values(2, 3, 4, 5, 6, 8), testing::Values(32, 64, 128)),
                         [](const auto& param) {
                           return "bits" + std::to_string(std::get<0>(param.param)) + "_group" +
                                  std::to_string(std::get<1>(param.param));
                         });

// ---- Whole checkpoints

// Half a step for the rounding to a code. The anchored edge is `steps` = rint(edge / step) steps from zero, at least half
// of the top code, so rounding that number stretches the grid by up to 0.5 / (top / 2): the other edge can lie one step
// beyond the top code and is clipped. Rounding the scale to bf16 (8 significant bits) moves a code by 2^-8 of its value.
void expect_close(const WeightMatrix& original, const WeightMatrix& quantized) {
  ASSERT_EQ(original.rows, quantized.rows);
  ASSERT_EQ(original.cols, quantized.cols);
  ASSERT_TRUE(quantized.quantized());
  std::vector<float> before(original.cols), after(original.cols);
  const auto top = static_cast<float>((1 << quantized.bits) - 1);
  for (int64_t r = 0; r < original.rows; ++r) {
    original.dequantize_row(r, before.data());
    quantized.dequantize_row(r, after.data());
    for (int64_t i = 0; i < original.cols; ++i) {
      const int64_t group = (r * original.cols + i) / quantized.group_size;
      const float scale = load_as_float(quantized.scales, quantized.scale_dtype, group);
      const float code = std::round((after[i] - load_as_float(quantized.biases, quantized.scale_dtype, group)) / scale);
      const float steps = (code == top ? 1.0f : 0.5f) + code * 0x1p-8f + 1e-3f;
      ASSERT_LE(std::abs(before[i] - after[i]), steps * std::abs(scale)) << "row " << r << ", column " << i;
    }
  }
}

void expect_close(const ModelWeights& raw, const ModelWeights& quantized, int experts) {
  expect_close(raw.embed, quantized.embed);
  expect_close(raw.head, quantized.head);
  for (size_t i = 0; i < raw.layers.size(); ++i) {
    const LayerWeights &a = raw.layers[i], &b = quantized.layers[i];
    if (a.kind == LayerKind::linear_attention) {
      expect_close(a.linear.qkv, b.linear.qkv);
      EXPECT_EQ(a.linear.conv, b.linear.conv);
      EXPECT_EQ(a.linear.a_log, b.linear.a_log);
      EXPECT_EQ(a.linear.norm, b.linear.norm);
    } else {
      expect_close(a.full.q, b.full.q);
    }
    for (size_t j = 0; j < a.input_norm.size(); ++j) {
      EXPECT_EQ(b.input_norm[j], bf16_to_float(float_to_bf16(a.input_norm[j])));
    }
    expect_close(a.moe.router, b.moe.router);
    EXPECT_EQ(b.moe.router.bits, 8);
    for (int e = 0; e < experts; ++e) {
      expect_close(a.moe.gate[e], b.moe.gate[e]);
      expect_close(a.moe.up[e], b.moe.up[e]);
      expect_close(a.moe.down[e], b.moe.down[e]);
    }
  }
}

test::TestModel raw_model() {
  ModelConfig config = test::small_config();
  config.quantization = {};
  return test::to_raw(test::TestModel(config));
}

TEST(QuantizeCheckpoint, RawBecomesTheMlxForm) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "raw");
  test::TestModel raw = raw_model();
  raw.tensors.emplace("model.visual.x", test::TestTensor{DType::bf16, {4}, std::vector<std::byte>(8)});
  raw.write(directory / "raw");
  test::write_text(directory / "raw/tokenizer.json", "{}");
  test::write_text(directory / "raw/generation_config.json", R"({"eos_token_id": 3})");
  test::write_text(directory / "raw/notes.txt", "not part of a model");

  const QuantizeOptions options{.weights = {.bits = 4, .group_size = 32}};
  const auto summary = quantize_checkpoint(directory / "raw", directory / "mlx/", options);
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->before.at(TensorPart::vision).tensors, 1);
  EXPECT_FALSE(summary->after.contains(TensorPart::vision));
  EXPECT_FALSE(std::filesystem::exists(directory / "mlx.partial"));
  EXPECT_EQ(test::read_text(directory / "mlx/tokenizer.json"), "{}");
  EXPECT_TRUE(std::filesystem::exists(directory / "mlx/generation_config.json"));
  EXPECT_FALSE(std::filesystem::exists(directory / "mlx/notes.txt"));

  const BoundModel a = open_and_bind(directory / "raw"), b = open_and_bind(directory / "mlx");
  EXPECT_TRUE(b.checkpoint->tensors().contains("language_model.model.layers.0.mlp.switch_mlp.up_proj.scales"));
  expect_close(a.weights, b.weights, 4);
}

TEST(QuantizeCheckpoint, OracleStaysWithinAStep) {
  LILY_NEED_ORACLE("g");
  const test::TemporaryDirectory directory;
  const test::Oracle oracle = test::open_oracle("g");
  const auto summary = quantize_checkpoint(oracle.directory, directory / "mlx", {});
  ASSERT_TRUE(summary) << summary.error().message();
  const BoundModel a = open_and_bind(oracle.directory), b = open_and_bind(directory / "mlx");
  expect_close(a.weights, b.weights, 8);
}

TEST(QuantizeCheckpoint, ColumnsThatTheGroupDoesNotDivideStayBf16) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "raw");
  raw_model().write(directory / "raw");
  const auto summary = quantize_checkpoint(directory / "raw", directory / "mlx", {});  // group 64; down_proj has 32
  ASSERT_TRUE(summary) << summary.error().message();
  const BoundModel bound = open_and_bind(directory / "mlx");
  EXPECT_EQ(bound.weights.layers[0].moe.down.all.dtype, DType::bf16);
  EXPECT_EQ(bound.weights.layers[0].moe.gate.all.bits, 4);
}

TEST(QuantizeCheckpoint, RefusesWhatItWouldHarm) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "raw");
  std::filesystem::create_directory(directory / "there");
  raw_model().write(directory / "raw");
  const auto onto = quantize_checkpoint(directory / "raw", directory / "there", {});
  ASSERT_FALSE(onto);
  EXPECT_EQ(onto.error().message(), directory / "there" + ": exists already: expected a new directory");

  std::filesystem::create_directory(directory / "mlx");
  test::TestModel().write(directory / "mlx");
  const auto again = quantize_checkpoint(directory / "mlx", directory / "twice", {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().what, "already quantised");
  EXPECT_FALSE(std::filesystem::exists(directory / "twice.partial"));
}

TEST(QuantizeCheckpoint, NanLeavesNothingBehind) {
  const test::TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "raw");
  test::TestModel raw = raw_model();
  raw.tensors.at("lm_head.weight").as<uint16_t>()[64 * 5] = 0x7fc0;
  raw.write(directory / "raw");
  const auto summary = quantize_checkpoint(directory / "raw", directory / "mlx", {});
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().message(), directory / "raw" +
                                           ": language_model.lm_head.weight: cannot be quantised: expected finite "
                                           "weights, got NaN or infinity in row 5");
  EXPECT_FALSE(std::filesystem::exists(directory / "mlx"));
  EXPECT_FALSE(std::filesystem::exists(directory / "mlx.partial"));
}

}  // namespace
}  // namespace lily
