// Matrix products over threads: weights are dequantised panel by panel, just before they are used.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/kernels.h"
#include "base/aligned_vector.h"
#include "base/thread_pool.h"
#include "model/weights.h"

namespace lily::cpu {

// Buffers only grow: a decode step allocates nothing.
template <class Vector>
void grow(Vector& buffer, int64_t size) {
  if (static_cast<int64_t>(buffer.size()) < size) buffer.resize(size);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// Activations [tokens, cols] f32 that matrices are multiplied with, and the same numbers in the form that the products
// with 4-bit codes want; see Compute::prepare.
struct Activations {
  enum class Form {
    plain,   // only `data`
    planar,  // --exact, few tokens: `planar` and `sums`
    gemv,    // few tokens: split as SplitKernels::gemv wants them
    gemm,    // many tokens: split as SplitKernels::gemm wants them
  };

  int64_t tokens = 0;
  int64_t cols = 0;
  AlignedVector<float> data;  // [tokens, cols]

  Form form = Form::plain;
  AlignedVector<float> planar;      // [tokens, cols]
  AlignedVector<int8_t> high, low;  // [tokens, split_stride()]
  AlignedVector<float> scales;      // [tokens]
  AlignedVector<float> sums;        // [tokens, cols / 64]

  void resize(int64_t new_tokens, int64_t new_cols);
  float* row(int64_t token) { return data.data() + token * cols; }
  const float* row(int64_t token) const { return data.data() + token * cols; }

  // A cache line more than the row: rows of a power of two would share few sets of the first-level cache.
  int64_t split_stride() const { return cols + 64; }
  SplitRows split_rows(int64_t first, int64_t n) const;
};

// out[token * stride + r] = (w x[token])[r], or += where `accumulate`.
struct Product {
  const WeightMatrix* w;
  float* out;
  int64_t stride;
  bool accumulate = false;
};

// A run of rows of a product on one thread: rows [first, first + count) of w, for rows [x_first, x_first + n) of x,
// to out[i * stride + (r - first)].
struct Block {
  const WeightMatrix* w;
  int64_t first, count;
  const Activations* x;
  int64_t x_first, n;
  float* out;
  int64_t stride;
  Upcoming next = {};  // what the thread multiplies after this
};

// Rows [first, first + count) of w as they lie in memory.
Upcoming upcoming(const WeightMatrix& w, int64_t first, int64_t count);

class Compute {
 public:
  // exact: products take float32 activations; otherwise 4-bit ones take 16-bit integers, where the kernels can.
  Compute(const Kernels& kernels, int threads, bool exact);

  const Kernels& kernels() const { return kernels_; }
  int threads() const { return pool_.threads(); }

  // body(index, worker) for [0, count). `work` counts the loop's multiply-adds, roughly: a short loop stays on the
  // calling thread, which is faster than waking others and does not wait for one that the system took away.
  template <class Body>
  void parallel_for(int64_t count, int64_t work, const Body& body) {
    if (work >= parallel_work) return pool_.parallel_for(count, body);
    for (int64_t i = 0; i < count; ++i) body(i, 0);
  }

  // About 30 us of one core.
  static constexpr int64_t parallel_work = int64_t{1} << 19;

  // How many of `rows` make one work item: many, because activations stream past each item and weights are fetched
  // ahead inside it, but few enough for threads to end together.
  int64_t block_rows(int64_t rows) const;

  // All products have the same input and run as one parallel loop.
  void multiply(std::span<const Product> products, const Activations& x);
  void multiply_block(const Block& block, int worker);

  // Gives x the form for products whose matrices see about `rows` of its rows each.
  void prepare(Activations& x, int64_t rows);
  // Whether products of w read x's split form, and not its floats.
  static bool reads_split(const WeightMatrix& w, const Activations& x);
  // out's row i = x's row rows[i], in split form or as floats.
  void gather(const Activations& x, std::span<const int32_t> rows, bool split, Activations& out);

  // Scratch of one worker; the slots are independent, their contents last until the next call with the slot.
  enum class Slot { panel, product, gate, up, scores };
  static constexpr int slots = 5;
  float* scratch(int worker, Slot slot, int64_t floats);

  // One row of a matrix as float32.
  void dequantize_row(const WeightMatrix& w, int64_t row, float* out) const;

 private:
  struct Item {  // rows [first, first + count)
    const Product* product;
    int64_t first, count;
  };

  void multiply_split(const Block& block, int worker);
  void multiply_floats(const Block& block, int worker);

  const Kernels& kernels_;
  const SplitKernels* split_;  // null: float32 activations
  ThreadPool pool_;
  std::vector<Item> items_;
  std::vector<AlignedVector<float>> scratch_;  // [workers * slots]
};

}  // namespace lily::cpu
