#include "backend/gpu/matrix_pieces.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace lily::gpu {
namespace {

constexpr int64_t rows_at_once = 1024;  // rewritten between two writes

bool as_it_is(const MatrixForm& form, const MatrixPiece& piece) {
  const WeightMatrix& m = piece.matrix;
  if (piece.first_col != 0 || piece.cols != m.cols) return false;
  if (!m.quantized()) return form.bits == 16 && m.dtype == DType::bf16;
  return static_cast<uint32_t>(m.bits) == form.bits && static_cast<uint32_t>(m.group_size) == form.group_size &&
         m.scale_dtype == DType::bf16;
}

unsigned code_at(const std::byte* row, int64_t index, int bits) {
  const int64_t bit = index * bits;
  auto window = std::to_integer<unsigned>(row[bit / 8]);
  if (bit % 8 + bits > 8) window |= std::to_integer<unsigned>(row[bit / 8 + 1]) << 8;
  return (window >> (bit % 8)) & ((1u << bits) - 1);
}

void put_code(std::byte* row, int64_t index, uint32_t bits, unsigned code) {
  const int64_t bit = index * bits;
  const unsigned shifted = code << (bit % 8);
  row[bit / 8] |= static_cast<std::byte>(shifted & 0xff);
  if (bit % 8 + bits > 8) row[bit / 8 + 1] |= static_cast<std::byte>(shifted >> 8);
}

void put_bf16(std::byte* to, int64_t index, float value) {
  const uint16_t bits = float_to_bf16(value);
  std::memcpy(to + 2 * index, &bits, 2);
}

// One row of a piece in the common form.
void rewrite_row(const MatrixForm& form, const MatrixPiece& piece, int64_t row, std::vector<float>& weights,
                 std::byte* codes, std::byte* scales, std::byte* biases) {
  const WeightMatrix& m = piece.matrix;
  if (form.bits == 16) {
    weights.resize(m.cols);
    m.dequantize_row(row, weights.data());
    for (int64_t i = 0; i < piece.cols; ++i) put_bf16(codes, i, weights[piece.first_col + i]);
    return;
  }
  const std::byte* data = m.data + row * m.row_bytes();
  std::memset(codes, 0, form.row_bytes());
  for (int64_t i = 0; i < piece.cols; ++i) put_code(codes, i, form.bits, code_at(data, piece.first_col + i, m.bits));
  for (int64_t g = 0; g < piece.cols / form.group_size; ++g) {
    const int64_t group = (piece.first_col + g * form.group_size) / m.group_size;
    put_bf16(scales, g, load_as_float(m.scales + row * m.scale_row_bytes(), m.scale_dtype, group));
    put_bf16(biases, g, load_as_float(m.biases + row * m.scale_row_bytes(), m.scale_dtype, group));
  }
}

}  // namespace

MatrixForm common_form(const std::vector<MatrixPiece>& pieces) {
  MatrixForm form{.cols = static_cast<uint32_t>(pieces.front().cols)};
  uint32_t group = 0;
  for (const MatrixPiece& piece : pieces) {
    assert(piece.cols == pieces.front().cols);
    form.rows += static_cast<uint32_t>(piece.matrix.rows);
    form.bits = std::max(form.bits, piece.matrix.quantized() ? static_cast<uint32_t>(piece.matrix.bits) : 16u);
    auto own = static_cast<uint32_t>(piece.matrix.group_size);
    while (own > 1 && (piece.cols % own != 0 || piece.first_col % own != 0)) own /= 2;  // a piece starts with a group
    if (piece.matrix.quantized()) group = group == 0 ? own : std::min(group, own);
  }
  form.group_size = form.bits == 16 ? 0 : group;
  return form;
}

Result<void> write_pieces(const MatrixForm& form, const std::vector<MatrixPiece>& pieces, const PutBytes& codes,
                          const PutBytes& scales, const PutBytes& biases) {
  const size_t row_bytes = form.row_bytes(), scale_bytes = form.scale_row_bytes();
  int64_t done = 0;  // rows
  std::vector<float> weights;
  for (const MatrixPiece& piece : pieces) {
    const WeightMatrix& m = piece.matrix;
    if (as_it_is(form, piece)) {
      LILY_CHECK(codes(done * row_bytes, {m.data, m.rows * row_bytes}));
      if (scale_bytes > 0) {
        LILY_CHECK(scales(done * scale_bytes, {m.scales, m.rows * scale_bytes}));
        LILY_CHECK(biases(done * scale_bytes, {m.biases, m.rows * scale_bytes}));
      }
      done += m.rows;
      continue;
    }
    for (int64_t first = 0; first < m.rows; first += rows_at_once) {
      const int64_t count = std::min(rows_at_once, m.rows - first);
      std::vector<std::byte> c(count * row_bytes), s(count * scale_bytes), b(count * scale_bytes);
      for (int64_t r = 0; r < count; ++r) {
        rewrite_row(form, piece, first + r, weights, &c[r * row_bytes], s.data() + r * scale_bytes,
                    b.data() + r * scale_bytes);
      }
      LILY_CHECK(codes(done * row_bytes, c));
      if (scale_bytes > 0) {
        LILY_CHECK(scales(done * scale_bytes, s));
        LILY_CHECK(biases(done * scale_bytes, b));
      }
      done += count;
    }
  }
  return {};
}

}  // namespace lily::gpu
