// Matrices put together from pieces: rows of several matrices under each other, or some columns of one. Where their codes have
// other widths or groups, they are rewritten to the widest and the smallest, which changes no weight.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/weights.h"

namespace lily::gpu {

struct MatrixPiece {
  WeightMatrix matrix;
  int64_t first_col, cols;
};

inline MatrixPiece whole(const WeightMatrix& m) { return {m, 0, m.cols}; }

struct MatrixForm {
  uint32_t rows = 0, cols = 0;
  uint32_t bits = 0;        // 16: bf16 weights, no groups
  uint32_t group_size = 0;  // 0 where bits is 16

  size_t row_bytes() const { return size_t{cols} * bits / 8; }
  size_t scale_row_bytes() const { return bits == 16 ? 0 : size_t{cols} / group_size * 2; }  // bf16
  size_t codes_bytes() const { return rows * row_bytes(); }
  size_t scales_bytes() const { return rows * scale_row_bytes(); }
};

// Pieces of the same number of columns.
MatrixForm common_form(const std::vector<MatrixPiece>& pieces);

// Called with consecutive pieces of data, `first` bytes from the start.
using PutBytes = std::function<Result<void>(size_t first, std::span<const std::byte> data)>;

// Codes, scales and biases of all rows. Scales become bf16, unquantised weights, too: exact where the file has bf16.
Result<void> write_pieces(const MatrixForm& form, const std::vector<MatrixPiece>& pieces, const PutBytes& codes,
                          const PutBytes& scales, const PutBytes& biases);

}  // namespace lily::gpu
