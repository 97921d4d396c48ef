// Matrices put together from pieces of other forms keep every weight.
#include "backend/gpu/matrix_pieces.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace lily::gpu {
namespace {

struct Stored {
  std::vector<std::byte> data, scales, biases;
  WeightMatrix matrix;
};

Stored quantized(int64_t rows, int64_t cols, int bits, int group_size, unsigned seed) {
  std::mt19937 random(seed);
  Stored s;
  s.matrix = {.rows = rows,
              .cols = cols,
              .dtype = DType::u32,
              .bits = bits,
              .group_size = group_size,
              .scale_dtype = DType::bf16};
  s.data.resize(rows * cols * bits / 8 + 1);  // one more: an odd address
  for (std::byte& b : s.data) b = static_cast<std::byte>(random());
  for (std::vector<std::byte>* v : {&s.scales, &s.biases}) {
    for (int64_t i = 0; i < rows * cols / group_size; ++i) {
      const uint16_t value = float_to_bf16(static_cast<float>(static_cast<int>(random() % 200) - 100) / 512);
      const auto* bytes = reinterpret_cast<const std::byte*>(&value);
      v->insert(v->end(), bytes, bytes + 2);
    }
  }
  s.matrix.data = s.data.data() + 1;
  s.matrix.scales = s.scales.data();
  s.matrix.biases = s.biases.data();
  return s;
}

// The weights of a put-together matrix, row after row.
std::vector<float> weights_of(const MatrixForm& form, const std::vector<MatrixPiece>& pieces) {
  std::vector<std::byte> codes(form.codes_bytes()), scales(form.scales_bytes()), biases(form.scales_bytes());
  const auto into = [](std::vector<std::byte>& to) {
    return [&to](size_t first, std::span<const std::byte> data) -> Result<void> {
      EXPECT_LE(first + data.size(), to.size());
      std::copy(data.begin(), data.end(), to.begin() + static_cast<std::ptrdiff_t>(first));
      return {};
    };
  };
  EXPECT_TRUE(write_pieces(form, pieces, into(codes), into(scales), into(biases)));
  WeightMatrix m{.rows = form.rows, .cols = form.cols, .dtype = DType::bf16, .data = codes.data()};
  if (form.bits != 16) {
    m.bits = static_cast<int>(form.bits);
    m.group_size = static_cast<int>(form.group_size);
    m.scale_dtype = DType::bf16;
    m.scales = scales.data();
    m.biases = biases.data();
  }
  std::vector<float> out(m.rows * m.cols);
  for (int64_t r = 0; r < m.rows; ++r) m.dequantize_row(r, &out[r * m.cols]);
  return out;
}

std::vector<float> expected(const std::vector<MatrixPiece>& pieces) {
  std::vector<float> out;
  for (const MatrixPiece& piece : pieces) {
    std::vector<float> row(piece.matrix.cols);
    for (int64_t r = 0; r < piece.matrix.rows; ++r) {
      piece.matrix.dequantize_row(r, row.data());
      out.insert(out.end(), row.begin() + piece.first_col, row.begin() + piece.first_col + piece.cols);
    }
  }
  return out;
}

TEST(MatrixPiecesTest, RowsOfOneForm) {
  const Stored a = quantized(3, 128, 4, 64, 1), b = quantized(5, 128, 4, 64, 2);
  const std::vector<MatrixPiece> pieces = {whole(a.matrix), whole(b.matrix)};
  const MatrixForm form = common_form(pieces);
  EXPECT_EQ(form.rows, 8u);
  EXPECT_EQ(form.bits, 4u);
  EXPECT_EQ(form.group_size, 64u);
  EXPECT_EQ(weights_of(form, pieces), expected(pieces));
}

TEST(MatrixPiecesTest, OtherWidthsAndGroupsBecomeTheWidestAndSmallest) {
  for (const int bits : {2, 3, 5, 6}) {
    const Stored a = quantized(1030, 128, bits, 128, 3), b = quantized(5, 128, 8, 32, 4);
    const std::vector<MatrixPiece> pieces = {whole(a.matrix), whole(b.matrix)};
    const MatrixForm form = common_form(pieces);
    EXPECT_EQ(form.bits, 8u);
    EXPECT_EQ(form.group_size, 32u);
    EXPECT_EQ(weights_of(form, pieces), expected(pieces)) << bits;
  }
}

TEST(MatrixPiecesTest, SomeColumns) {
  const Stored a = quantized(4, 256, 4, 64, 5);
  const std::vector<MatrixPiece> pieces = {{a.matrix, 0, 96}, {a.matrix, 96, 96}};
  const MatrixForm form = common_form(pieces);
  EXPECT_EQ(form.group_size, 32u);  // 96 is no multiple of 64
  EXPECT_EQ(weights_of(form, pieces), expected(pieces));
}

TEST(MatrixPiecesTest, UnquantizedWeightsStayBf16) {
  std::vector<uint16_t> values;
  for (int i = 0; i < 4 * 64; ++i) values.push_back(float_to_bf16(static_cast<float>(i) - 100));
  const WeightMatrix m{
      .rows = 4, .cols = 64, .dtype = DType::bf16, .data = reinterpret_cast<const std::byte*>(values.data())};
  const std::vector<MatrixPiece> pieces = {whole(m)};
  const MatrixForm form = common_form(pieces);
  EXPECT_EQ(form.bits, 16u);
  EXPECT_EQ(form.scales_bytes(), 0u);
  EXPECT_EQ(weights_of(form, pieces), expected(pieces));
}

}  // namespace
}  // namespace lily::gpu
