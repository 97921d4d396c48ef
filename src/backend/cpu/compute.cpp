#include "backend/cpu/compute.h"

#include <algorithm>

namespace lily::cpu {
namespace {

// Up to this many rows of activations, unpacking again for each row beats writing an unpacked panel.
constexpr int64_t max_gemv_tokens = 2;

// An unpacked panel of about 256 KB stays in a second-level cache while all tokens stream past it.
constexpr int64_t panel_floats = 64 * 1024;

const uint8_t* bytes(const std::byte* data) { return reinterpret_cast<const uint8_t*>(data); }

struct Item {
  const Product* product;
  int64_t first, count;
};

}  // namespace

void Activations::resize(int64_t new_tokens, int64_t new_cols) {
  tokens = new_tokens;
  cols = new_cols;
  prepared = false;
  grow(data, tokens * cols);
}

Compute::Compute(const Kernels& kernels, int threads)
    : kernels_(kernels), pool_(threads), scratch_(pool_.threads() * slots) {}

float* Compute::scratch(int worker, Slot slot, int64_t floats) {
  std::vector<float>& buffer = scratch_[worker * slots + static_cast<int>(slot)];
  grow(buffer, floats);
  return buffer.data();
}

void Compute::prepare(Activations& x) {
  if (x.cols % (8 * kernels_.lanes) != 0 || x.cols % 64 != 0) return;
  grow(x.planar, x.tokens * x.cols);
  grow(x.sums, x.tokens * x.cols / 64);
  parallel_for(x.tokens, x.tokens * x.cols, [&](int64_t t, int) {
    kernels_.prepare_q4(x.row(t), x.cols, &x.planar[t * x.cols], &x.sums[t * x.cols / 64]);
  });
  x.prepared = true;
}

bool Compute::gemv_fits(const WeightMatrix& w, const Activations& x) const {
  return x.prepared && w.bits == 4 && w.group_size == 64 && w.scale_dtype == DType::bf16;
}

void Compute::dequantize_row(const WeightMatrix& w, int64_t row, float* out) const {
  const std::byte* data = w.data + row * w.row_bytes();
  if (w.quantized()) {
    kernels_.dequantize_row({.codes = bytes(data),
                             .scales = w.scales + row * w.scale_row_bytes(),
                             .biases = w.biases + row * w.scale_row_bytes(),
                             .scale_dtype = w.scale_dtype,
                             .bits = w.bits,
                             .group_size = w.group_size,
                             .cols = w.cols},
                            out);
  } else {
    kernels_.widen(data, w.dtype, w.cols, out);
  }
}

void Compute::multiply_block(const Block& block, int worker) {
  const WeightMatrix& w = *block.w;
  const Activations& x = *block.x;
  const auto row_of = [&](int64_t i) { return block.tokens ? block.tokens[i] : i; };

  if (block.n <= max_gemv_tokens && gemv_fits(w, x)) {
    const Q4Rows rows = {.codes = bytes(w.data + block.first * w.row_bytes()),
                         .scales = bytes(w.scales + block.first * w.scale_row_bytes()),
                         .biases = bytes(w.biases + block.first * w.scale_row_bytes()),
                         .rows = block.count,
                         .cols = w.cols};
    for (int64_t i = 0; i < block.n; ++i) {
      kernels_.gemv_q4(rows, &x.planar[row_of(i) * x.cols], &x.sums[row_of(i) * x.cols / 64],
                       block.out + i * block.stride);
    }
    return;
  }

  // With few tokens a panel is read few times: keep it in the first-level cache.
  const int64_t panel_rows = block.n <= kernels_.tile_tokens
                                 ? kernels_.tile_rows
                                 : std::clamp<int64_t>(panel_floats / w.cols, kernels_.tile_rows, block_rows);
  float* unpacked = scratch(worker, Slot::panel, std::min(panel_rows, block.count) * w.cols);
  for (int64_t r = 0; r < block.count; r += panel_rows) {
    const int64_t rows = std::min(panel_rows, block.count - r);
    for (int64_t i = 0; i < rows; ++i) dequantize_row(w, block.first + r + i, unpacked + i * w.cols);
    for (int64_t t = 0; t < block.n; t += kernels_.tile_tokens) {
      const int64_t n = std::min<int64_t>(kernels_.tile_tokens, block.n - t);
      const float* in[8];
      float* out[8];
      for (int64_t i = 0; i < n; ++i) {
        in[i] = x.row(row_of(t + i));
        out[i] = block.out + (t + i) * block.stride + r;
      }
      kernels_.matmul_tile(unpacked, rows, w.cols, in, n, out);
    }
  }
}

void Compute::multiply(std::span<const Product> products, const Activations& x) {
  std::vector<Item> items;
  int64_t work = 0;
  for (const Product& product : products) {
    work += product.w->rows * product.w->cols * x.tokens;
    for (int64_t first = 0; first < product.w->rows; first += block_rows) {
      items.push_back({&product, first, std::min(block_rows, product.w->rows - first)});
    }
  }
  parallel_for(static_cast<int64_t>(items.size()), work, [&](int64_t i, int worker) {
    const auto [p, first, count] = items[i];
    const int64_t n = x.tokens;
    float* target = p->accumulate ? scratch(worker, Slot::product, n * count) : p->out + first;
    const int64_t stride = p->accumulate ? count : p->stride;
    multiply_block({p->w, first, count, &x, nullptr, n, target, stride}, worker);
    if (!p->accumulate) return;
    for (int64_t t = 0; t < n; ++t) kernels_.add(p->out + t * p->stride + first, target + t * count, count);
  });
}

}  // namespace lily::cpu
