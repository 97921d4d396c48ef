#include <cstring>

#include "model/weights.h"

namespace lily {

WeightMatrix WeightMatrix::row_block(int64_t first, int64_t count) const {
  WeightMatrix block = *this;
  block.rows = count;
  block.data = data + first * row_bytes();
  if (quantized()) {
    block.scales = scales + first * scale_row_bytes();
    block.biases = biases + first * scale_row_bytes();
  }
  return block;
}

void WeightMatrix::dequantize_row(int64_t row, float* out) const {
  const std::byte* codes = data + row * row_bytes();
  if (!quantized()) {
    for (int64_t i = 0; i < cols; ++i) out[i] = load_as_float(codes, dtype, i);
    return;
  }
  const std::byte* row_scales = scales + row * scale_row_bytes();
  const std::byte* row_biases = biases + row * scale_row_bytes();
  const unsigned mask = (1u << bits) - 1;
  for (int64_t i = 0; i < cols; ++i) {
    const int64_t bit = i * bits;
    const int shift = bit % 8;
    auto window = std::to_integer<unsigned>(codes[bit / 8]);
    if (shift + bits > 8) window |= std::to_integer<unsigned>(codes[bit / 8 + 1]) << 8;
    const auto code = static_cast<float>((window >> shift) & mask);
    const int64_t group = i / group_size;
    out[i] = code * load_as_float(row_scales, scale_dtype, group) + load_as_float(row_biases, scale_dtype, group);
  }
}

}  // namespace lily
