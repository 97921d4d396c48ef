// Matrix products over threads: weights are dequantised panel by panel, just before they are used.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/kernels.h"
#include "base/thread_pool.h"
#include "model/weights.h"

namespace lily::cpu {

// Buffers only grow: a decode step allocates nothing.
template <class T>
void grow(std::vector<T>& buffer, int64_t size) {
  if (static_cast<int64_t>(buffer.size()) < size) buffer.resize(size);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// Activations [tokens, cols] f32 that matrices are multiplied with. `planar` and `sums` are the same numbers as the
// 4-bit GEMV wants them; they are there only while `prepared`.
struct Activations {
  int64_t tokens = 0;
  int64_t cols = 0;
  std::vector<float> data;    // [tokens, cols]
  std::vector<float> planar;  // [tokens, cols]
  std::vector<float> sums;    // [tokens, cols / 64]
  bool prepared = false;

  void resize(int64_t new_tokens, int64_t new_cols);
  float* row(int64_t token) { return data.data() + token * cols; }
  const float* row(int64_t token) const { return data.data() + token * cols; }
};

// out[token * stride + r] = (w x[token])[r], or += where `accumulate`.
struct Product {
  const WeightMatrix* w;
  float* out;
  int64_t stride;
  bool accumulate = false;
};

// A run of rows of a product on one thread: rows [first, first + count) of w, for `n` rows of x
// (x.row(tokens[i]), or x.row(i) where tokens is null), to out[i * stride + (r - first)].
struct Block {
  const WeightMatrix* w;
  int64_t first, count;
  const Activations* x;
  const int32_t* tokens;
  int64_t n;
  float* out;
  int64_t stride;
};

class Compute {
 public:
  Compute(const Kernels& kernels, int threads);

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

  // Rows of one work item: enough to pay for claiming it, few enough for threads to end together.
  static constexpr int64_t block_rows = 32;

  // All products have the same input and run as one parallel loop.
  void multiply(std::span<const Product> products, const Activations& x);
  void multiply_block(const Block& block, int worker);

  // Fills x.planar and x.sums, where the width allows.
  void prepare(Activations& x);

  // Scratch of one worker; the slots are independent, their contents last until the next call with the slot.
  enum class Slot { panel, product, gate, up, scores };
  static constexpr int slots = 5;
  float* scratch(int worker, Slot slot, int64_t floats);

  // One row of a matrix as float32.
  void dequantize_row(const WeightMatrix& w, int64_t row, float* out) const;

 private:
  bool gemv_fits(const WeightMatrix& w, const Activations& x) const;

  const Kernels& kernels_;
  ThreadPool pool_;
  std::vector<std::vector<float>> scratch_;  // [workers * slots]
};

}  // namespace lily::cpu
