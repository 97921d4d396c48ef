// Packed codes at every width and group size come back as code * scale + bias.
#include <gtest/gtest.h>

#include <random>

#include "model/weights.h"

namespace lily {
namespace {

// A matrix of known codes, packed bit by bit as the format says: code i of a row in bits [i * bits, (i + 1) * bits), least
// significant first.
struct KnownMatrix {
  WeightMatrix matrix;
  std::vector<unsigned> codes;
  std::vector<float> scales, biases;
  std::vector<std::byte> packed;

  KnownMatrix(int64_t rows, int64_t cols, int bits, int group_size, unsigned seed)
      : matrix{rows, cols, DType::u32, bits, group_size, DType::f32}, packed(rows * cols * bits / 8) {
    std::mt19937 random(seed);
    for (int64_t i = 0; i < rows * cols; ++i) {
      codes.push_back(random() % (1u << bits));
      for (int b = 0; b < bits; ++b) {
        const int64_t bit = i * bits + b;
        if (codes.back() >> b & 1) packed[bit / 8] |= std::byte(1 << bit % 8);
      }
    }
    for (int64_t g = 0; g < rows * cols / group_size; ++g) {
      scales.push_back((random() % 2 ? 0.25f : -0.125f) * static_cast<float>(1 + random() % 7));
      biases.push_back(static_cast<float>(random() % 64) - 32);
    }
    matrix.data = packed.data();
    matrix.scales = std::as_bytes(std::span(scales)).data();
    matrix.biases = std::as_bytes(std::span(biases)).data();
  }

  float expected(int64_t row, int64_t col) const {
    const int64_t i = row * matrix.cols + col;
    return static_cast<float>(codes[i]) * scales[i / matrix.group_size] + biases[i / matrix.group_size];
  }
};

class Packing : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Packing, DequantizesExactly) {
  const auto [bits, group_size] = GetParam();
  const KnownMatrix known(5, 2 * group_size + group_size, bits, group_size, 7 * bits + group_size);
  std::vector<float> row(known.matrix.cols);
  for (int64_t r = 0; r < 5; ++r) {
    known.matrix.dequantize_row(r, row.data());
    for (int64_t c = 0; c < known.matrix.cols; ++c) ASSERT_EQ(row[c], known.expected(r, c)) << r << ", " << c;
  }
}

TEST_P(Packing, RowBlockIsTheSameRows) {
  const auto [bits, group_size] = GetParam();
  const KnownMatrix known(6, group_size, bits, group_size, 1);
  const WeightMatrix block = known.matrix.row_block(4, 2);
  EXPECT_EQ(block.rows, 2);
  std::vector<float> row(group_size);
  block.dequantize_row(1, row.data());
  for (int64_t c = 0; c < group_size; ++c) EXPECT_EQ(row[c], known.expected(5, c));
}

INSTANTIATE_TEST_SUITE_P(All, Packing,
                         testing::Combine(testing::Values(2, 3, 4, 5, 6, 8), testing::Values(32, 64, 128)));

TEST(WeightMatrix, CountsItsBytes) {
  const KnownMatrix known(2, 128, 5, 64, 1);
  EXPECT_EQ(known.matrix.row_bytes(), 80u);
  EXPECT_EQ(known.matrix.scale_row_bytes(), 8u);
  EXPECT_EQ(known.matrix.bytes(), 2u * (80 + 2 * 8));
}

TEST(WeightMatrix, ReadsHalfPrecisionScales) {
  const uint16_t scale = 0xb800, bias = 0x3c00;  // f16 -0.5 and 1
  const std::vector<std::byte> packed(16, std::byte{0x31});
  WeightMatrix matrix{1, 32, DType::u32, 4, 32, DType::f16, packed.data()};
  matrix.scales = reinterpret_cast<const std::byte*>(&scale);
  matrix.biases = reinterpret_cast<const std::byte*>(&bias);
  float row[32];
  matrix.dequantize_row(0, row);
  EXPECT_EQ(row[0], 0.5f);
  EXPECT_EQ(row[1], -0.5f);
}

TEST(ExpertMatrices, InterleavedRowsAreFound) {
  std::vector<float> rows(2 * 6);  // two experts of [2 gate rows, 1 up row], 2 columns
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  WeightMatrix all{6, 2, DType::f32};
  all.data = std::as_bytes(std::span(rows)).data();
  const ExpertMatrices gate{all, 3, 0, 2}, up{all, 3, 2, 1};
  float row[2];
  gate[1].dequantize_row(1, row);
  EXPECT_EQ(row[0], 8);
  up[1].dequantize_row(0, row);
  EXPECT_EQ(row[0], 10);
}

}  // namespace
}  // namespace lily
