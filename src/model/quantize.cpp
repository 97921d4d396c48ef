#include "model/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dtype.h"

namespace lily {
namespace {

struct Affine {
  float scale, bias;
};

// The grid of one group. Anchoring the edge of larger magnitude exactly, and dividing it by a whole number of steps,
// puts zero on the grid; the scale is negative where that edge is the maximum.
Affine fit(std::span<const float> group, float top_code) {
  const auto [low, high] = std::minmax_element(group.begin(), group.end());
  const bool low_is_larger = std::abs(*low) > std::abs(*high);
  const float edge = low_is_larger ? *low : *high;
  const float step = std::max((*high - *low) / top_code, 1e-7f);
  const float scale = low_is_larger ? step : -step;
  const float steps = std::rint(edge / scale);
  return steps == 0 ? Affine{scale, 0} : Affine{edge / steps, edge};
}

}  // namespace

void quantize_row(std::span<const float> row, Quantization q, std::byte* codes, uint16_t* scales, uint16_t* biases) {
  const auto top_code = static_cast<float>((1 << q.bits) - 1);
  std::memset(codes, 0, row.size() * q.bits / 8);
  size_t bit = 0;
  for (size_t start = 0; start < row.size(); start += q.group_size) {
    const auto group = row.subspan(start, q.group_size);
    const Affine affine = fit(group, top_code);
    // The codes come from the grid before its rounding to bf16, as in MLX.
    for (const float w : group) {
      const auto code = static_cast<unsigned>(std::clamp(std::rint((w - affine.bias) / affine.scale), 0.0f, top_code));
      const unsigned window = code << (bit % 8);
      codes[bit / 8] |= static_cast<std::byte>(window);
      if (window > 0xff) codes[bit / 8 + 1] |= static_cast<std::byte>(window >> 8);
      bit += q.bits;
    }
    *scales++ = float_to_bf16(affine.scale);
    *biases++ = float_to_bf16(affine.bias);
  }
}

}  // namespace lily
