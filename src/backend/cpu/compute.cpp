#include "backend/cpu/compute.h"

#include <algorithm>

namespace lily::cpu {
namespace {

// Up to this many rows of activations, unpacking codes in registers beats writing an unpacked panel.
constexpr int64_t max_gemv_rows = 4;

constexpr int64_t panel_rows = 16, gemm_run = 32;  // of SplitKernels::gemm

// An unpacked panel of about 256 KB stays in a second-level cache while all tokens stream past it.
constexpr int64_t panel_floats = 64 * 1024;

const uint8_t* bytes(const std::byte* data) { return reinterpret_cast<const uint8_t*>(data); }

QuantizedRows quantized_rows(const Block& block) {
  const WeightMatrix& w = *block.w;
  return {.codes = bytes(w.data + block.first * w.row_bytes()),
          .scales = bytes(w.scales + block.first * w.scale_row_bytes()),
          .biases = bytes(w.biases + block.first * w.scale_row_bytes()),
          .rows = block.count,
          .cols = w.cols};
}

}  // namespace

Upcoming upcoming(const WeightMatrix& w, int64_t first, int64_t count) {
  const auto scale_bytes = static_cast<int64_t>(w.scale_row_bytes());
  return {.data = {bytes(w.data + first * w.row_bytes()), bytes(w.scales + first * scale_bytes),
                   bytes(w.biases + first * scale_bytes)},
          .bytes = {count * static_cast<int64_t>(w.row_bytes()), count * scale_bytes, count * scale_bytes}};
}

void Activations::resize(int64_t new_tokens, int64_t new_cols) {
  tokens = new_tokens;
  cols = new_cols;
  form = Form::plain;
  grow(data, tokens * cols);
}

SplitRows Activations::split_rows(int64_t first, int64_t n) const {
  return {.high = &high[first * split_stride()],
          .low = &low[first * split_stride()],
          .scales = &scales[first],
          .sums = &sums[first * cols / 64],
          .tokens = n,
          .cols = cols,
          .stride = split_stride()};
}

Compute::Compute(const Kernels& kernels, int threads, bool exact)
    : kernels_(kernels), split_(exact ? nullptr : kernels.split), pool_(threads), scratch_(pool_.threads() * slots) {}

int64_t Compute::block_rows(int64_t rows) const {
  constexpr int64_t least = 32, most = 128, items_a_thread = 4;
  return std::clamp(rows / (items_a_thread * threads()) / least * least, least, most);
}

float* Compute::scratch(int worker, Slot slot, int64_t floats) {
  AlignedVector<float>& buffer = scratch_[worker * slots + static_cast<int>(slot)];
  grow(buffer, floats);
  return buffer.data();
}

void Compute::prepare(Activations& x, int64_t rows) {
  using Form = Activations::Form;
  const bool few = rows <= max_gemv_rows;
  const int64_t planar_block = 8 * kernels_.lanes;
  if (x.cols % 64 != 0) return;
  if (split_ && (!few || x.cols % (2 * split_->gemv_run) == 0)) {
    x.form = few ? Form::gemv : Form::gemm;
    grow(x.high, x.tokens * x.split_stride());
    grow(x.low, x.tokens * x.split_stride());
    grow(x.scales, x.tokens);
  } else if (!split_ && few && x.cols % planar_block == 0) {
    x.form = Form::planar;
    grow(x.planar, x.tokens * x.cols);
  } else {
    return;
  }
  grow(x.sums, x.tokens * x.cols / 64);
  parallel_for(x.tokens, 4 * x.tokens * x.cols, [&](int64_t t, int) {
    float* sums = &x.sums[t * x.cols / 64];
    if (x.form == Form::planar) return kernels_.prepare_q4(x.row(t), x.cols, &x.planar[t * x.cols], sums);
    const int64_t run = few ? split_->gemv_run : gemm_run;
    split_->split(x.row(t), x.cols, run, &x.high[t * x.split_stride()], &x.low[t * x.split_stride()], &x.scales[t],
                  sums);
  });
}

bool Compute::reads_split(const WeightMatrix& w, const Activations& x) {
  const bool published = w.bits == 4 && w.group_size == 64 && w.scale_dtype == DType::bf16;
  return published &&
         (x.form == Activations::Form::gemv || (x.form == Activations::Form::gemm && w.rows % panel_rows == 0));
}

void Compute::gather(const Activations& x, std::span<const int32_t> rows, bool split, Activations& out) {
  const auto n = static_cast<int64_t>(rows.size());
  out.resize(split ? 0 : n, x.cols);
  out.tokens = n;
  if (split) {
    out.form = x.form;
    grow(out.high, n * x.split_stride());
    grow(out.low, n * x.split_stride());
    grow(out.scales, n);
    grow(out.sums, n * x.cols / 64);
  }
  parallel_for(n, n * x.cols, [&](int64_t i, int) {
    const int64_t from = rows[i], stride = x.split_stride(), groups = x.cols / 64;
    if (!split) return static_cast<void>(std::copy_n(x.row(from), x.cols, out.row(i)));
    std::copy_n(&x.high[from * stride], x.cols, &out.high[i * stride]);
    std::copy_n(&x.low[from * stride], x.cols, &out.low[i * stride]);
    std::copy_n(&x.sums[from * groups], groups, &out.sums[i * groups]);
    out.scales[i] = x.scales[from];
  });
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
  const bool published = w.group_size == 64 && w.scale_dtype == DType::bf16;
  if (reads_split(w, x)) {
    multiply_split(block, worker);
  } else if (published && w.bits == 4 && x.form == Activations::Form::planar) {
    for (int64_t i = 0; i < block.n; ++i) {
      const int64_t row = block.x_first + i;
      kernels_.gemv_q4(quantized_rows(block), &x.planar[row * x.cols], &x.sums[row * x.cols / 64],
                       block.out + i * block.stride);
    }
  } else if (published && w.bits == 8 && block.n <= max_gemv_rows) {
    for (int64_t i = 0; i < block.n; ++i) {
      kernels_.gemv_q8(quantized_rows(block), x.row(block.x_first + i), block.out + i * block.stride);
    }
  } else {
    multiply_floats(block, worker);
  }
}

void Compute::multiply_split(const Block& block, int worker) {
  const SplitRows x = block.x->split_rows(block.x_first, block.n);
  if (block.x->form == Activations::Form::gemv) {
    return split_->gemv(quantized_rows(block), x, block.next, block.out, block.stride);
  }
  float* panels = scratch(worker, Slot::panel, split_->gemm_scratch(block.count, x.cols) / 4);
  split_->gemm(quantized_rows(block), x, block.next, reinterpret_cast<uint8_t*>(panels), block.out, block.stride);
}

// Any kind of weights: unpacked to float32, panel by panel.
void Compute::multiply_floats(const Block& block, int worker) {
  const WeightMatrix& w = *block.w;
  // With few tokens a panel is read few times: keep it in the first-level cache.
  const int64_t unpacked_rows = block.n <= kernels_.tile_tokens
                                    ? kernels_.tile_rows
                                    : std::clamp<int64_t>(panel_floats / w.cols, kernels_.tile_rows, block.count);
  float* unpacked = scratch(worker, Slot::panel, std::min(unpacked_rows, block.count) * w.cols);
  for (int64_t r = 0; r < block.count; r += unpacked_rows) {
    const int64_t rows = std::min(unpacked_rows, block.count - r);
    for (int64_t i = 0; i < rows; ++i) dequantize_row(w, block.first + r + i, unpacked + i * w.cols);
    for (int64_t t = 0; t < block.n; t += kernels_.tile_tokens) {
      const int64_t n = std::min<int64_t>(kernels_.tile_tokens, block.n - t);
      const float* in[8];
      float* out[8];
      for (int64_t i = 0; i < n; ++i) {
        in[i] = block.x->row(block.x_first + t + i);
        out[i] = block.out + (t + i) * block.stride + r;
      }
      kernels_.matmul_tile(unpacked, rows, w.cols, in, n, out);
    }
  }
}

void Compute::multiply(std::span<const Product> products, const Activations& x) {
  items_.clear();
  const int64_t n = x.tokens;
  int64_t work = 0;
  for (const Product& product : products) {
    const int64_t rows = block_rows(product.w->rows);
    work += product.w->rows * product.w->cols * n;
    for (int64_t first = 0; first < product.w->rows; first += rows) {
      items_.push_back({&product, first, std::min(rows, product.w->rows - first)});
    }
  }
  const auto item_count = static_cast<int64_t>(items_.size());
  parallel_for(item_count, work, [&](int64_t i, int worker) {
    const auto [p, first, count] = items_[i];
    float* target = p->accumulate ? scratch(worker, Slot::product, n * count) : p->out + first;
    Block block = {p->w, first, count, &x, 0, n, target, p->accumulate ? count : p->stride};
    if (const int64_t after = i + threads(); after < item_count) {  // likely this thread's next
      block.next = upcoming(*items_[after].product->w, items_[after].first, items_[after].count);
    }
    multiply_block(block, worker);
    if (!p->accumulate) return;
    for (int64_t t = 0; t < n; ++t) kernels_.add(p->out + t * p->stride + first, target + t * count, count);
  });
}

}  // namespace lily::cpu
