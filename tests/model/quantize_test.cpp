// quantize_row against MLX, and whole checkpoints through quantize_checkpoint.
#include "model/quantize.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/mapped_file.h"
#include "model/checkpoint.h"
#include "model/weights.h"

namespace lily {
namespace {

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
                         [](const auto& info) {
                           return "bits" + std::to_string(std::get<0>(info.param)) + "_group" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace lily
