// CUDA's own matrix products, on the host: which lane holds which element, edges, and stages of copies. On a GPU the tests of the
// portable kernels run them.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/args.h"
#include "support/code_matrix.h"
#include "support/compare.h"
#include "support/kernel_run.h"
// The words are macros, so they come after all other headers, and the kernels after them.
#include "support/cuda_on_host.h"
// then
#include "backend/gpu/cuda/kernels/gemm_4.h"
// then
#include "backend/gpu/cuda/kernels/gemm_bodies.h"

namespace lily {
namespace {

using kernels::bf16;
using kernels::uint3;

// bf16 weights, as the multiplication sees them.
std::vector<float> rounded(const std::vector<float>& weights) {
  std::vector<float> out;
  for (const float w : weights) out.push_back(bf16_to_float(float_to_bf16(w)));
  return out;
}

const bf16* halves(const std::vector<uint16_t>& bits) { return reinterpret_cast<const bf16*>(bits.data()); }

struct DenseShape {
  unsigned n, rows, first_row, cols, group_size, stride;
};

void expect_dense(const DenseShape& s, uint32_t output, bool late) {
  const test::CodeMatrix m = test::random_codes(s.first_row + s.rows, s.cols, 4, s.group_size, 4);
  const std::vector<float> x = test::normal_numbers(size_t{s.n} * s.cols, 1), weights = rounded(m.weights);
  std::vector<float> y = test::normal_numbers(size_t{s.n} * s.stride, 2), want = y;
  const std::vector<uint16_t> x_bits = test::as_bf16(x);
  std::vector<uint16_t> y_bits = test::as_bf16(y);
  const bool as_halves = output == kernels::gemm_store_bf16;
  void* const to = as_halves ? static_cast<void*>(y_bits.data()) : y.data();
  const kernels::GemmArgs args{s.n, s.rows, s.first_row, s.cols, s.group_size, s.stride, output};
  test::run_on_host(kernels::gemm_threads, (s.n + kernels::dense_tokens - 1) / kernels::dense_tokens,
                    (s.rows + 127) / 128, late, [&] {
                      THREAD_IDS
                      kernels::dense_block(halves(x_bits), m.codes.data(), halves(m.scales), halves(m.biases), to, args,
                                           test::dynamic_memory, thread_index, group);
                    });
  for (size_t t = 0; t < s.n; ++t) {
    for (size_t r = 0; r < s.rows; ++r) {
      double sum = output == kernels::gemm_add_f32 ? want[t * s.stride + r] : 0;
      for (size_t i = 0; i < s.cols; ++i) sum += double{weights[(s.first_row + r) * s.cols + i]} * x[t * s.cols + i];
      want[t * s.stride + r] = static_cast<float>(sum);
    }
  }
  if (as_halves) {
    for (size_t i = 0; i < y.size(); ++i) y[i] = bf16_to_float(y_bits[i]);
  }
  const test::Difference d = test::difference(y, want);
  EXPECT_TRUE(d.finite && d.relative < (as_halves ? 2e-3 : 1e-5))
      << "n " << s.n << ", output " << output << ": " << d.text();
}

TEST(CudaGemm, DenseTiles) {
  for (const bool late : {false, true}) {
    for (const DenseShape& s :
         {DenseShape{1, 64, 0, 64, 64, 70}, {70, 40, 8, 96, 32, 46}, {140, 264, 0, 448, 64, 264}}) {
      for (const uint32_t output : {kernels::gemm_store_bf16, kernels::gemm_store_f32, kernels::gemm_add_f32}) {
        expect_dense(s, output, late);
      }
    }
    expect_dense({65, 64, 0, 384, 128, 71}, kernels::gemm_store_f32, late);
  }
}

struct ExpertShape {
  unsigned n, experts, slots, rows, cols, group_size;
};

// Pairs sorted by expert, in blocks of 64 rows.
struct Groups {
  std::vector<uint32_t> pairs, experts, starts = {0}, blocks = {0};
};
Groups groups_of(const ExpertShape& s) {
  Groups g;
  std::mt19937 random(3);
  std::vector<uint32_t> choices;
  for (unsigned p = 0; p < s.n * s.slots; ++p)
    choices.push_back(random() % 3 ? static_cast<uint32_t>(random() % s.experts) : 0);
  for (uint32_t e = 0; e < s.experts; ++e) {
    for (uint32_t p = 0; p < choices.size(); ++p) {
      if (choices[p] != e) continue;
      g.pairs.push_back(p);
      g.experts.push_back(e);
    }
    for (uint32_t first = g.starts.back(); first < g.pairs.size(); first += 64)
      g.blocks.insert(g.blocks.end(), {e, first});
    g.starts.push_back(static_cast<uint32_t>(g.pairs.size()));
  }
  g.blocks[0] = static_cast<uint32_t>(g.blocks.size() / 2);
  return g;
}

double product(const std::vector<float>& weights, size_t row, const std::vector<float>& x, size_t x_row,
               unsigned cols) {
  double sum = 0;
  for (size_t i = 0; i < cols; ++i) sum += double{weights[row * cols + i]} * x[x_row * cols + i];
  return sum;
}

void expect_experts(const ExpertShape& s, bool down, bool late) {
  const Groups g = groups_of(s);
  const test::CodeMatrix gate = test::random_codes(size_t{s.experts} * s.rows, s.cols, 4, s.group_size, 4);
  const test::CodeMatrix up = test::random_codes(size_t{s.experts} * s.rows, s.cols, 4, s.group_size, 5);
  const std::vector<float> x = test::normal_numbers(size_t{s.n} * (down ? s.slots : 1) * s.cols, 1);
  const std::vector<uint16_t> x_bits = test::as_bf16(x);
  std::vector<uint16_t> y_bits(g.pairs.size() * s.rows, 0xffff);
  bf16* const y = reinterpret_cast<bf16*>(y_bits.data());
  const kernels::GroupedGemmArgs args{s.rows, s.cols, s.group_size, s.slots};
  test::run_on_host(kernels::gemm_threads, (s.rows + (down ? 127 : 63)) / (down ? 128 : 64), g.blocks[0], late, [&] {
    THREAD_IDS
    if (down) {
      kernels::down_block(halves(x_bits), g.starts.data(), g.blocks.data(), gate.codes.data(), halves(gate.scales),
                          halves(gate.biases), y, args, test::dynamic_memory, thread_index, group);
    } else {
      kernels::gate_up_block(halves(x_bits), g.pairs.data(), g.starts.data(), g.blocks.data(), gate.codes.data(),
                             halves(gate.scales), halves(gate.biases), up.codes.data(), halves(up.scales),
                             halves(up.biases), y, args, test::dynamic_memory, thread_index, group);
    }
  });
  const std::vector<float> gates = rounded(gate.weights), ups = rounded(up.weights);
  std::vector<float> got, want;
  for (size_t i = 0; i < g.pairs.size(); ++i) {
    for (size_t r = 0; r < s.rows; ++r) {
      const size_t row = g.experts[i] * s.rows + r, x_row = down ? i : g.pairs[i] / s.slots;
      const double v = product(gates, row, x, x_row, s.cols);
      want.push_back(static_cast<float>(down ? v : v / (1 + std::exp(-v)) * product(ups, row, x, x_row, s.cols)));
      got.push_back(bf16_to_float(y_bits[i * s.rows + r]));
    }
  }
  const test::Difference d = test::difference(got, want);
  EXPECT_TRUE(d.finite && d.relative < 2e-3) << (down ? "down" : "gate and up") << ", n " << s.n << ": " << d.text();
}

TEST(CudaGemm, ExpertBlocks) {
  for (const bool late : {false, true}) {
    for (const bool down : {false, true}) {
      for (const ExpertShape& s :
           {ExpertShape{33, 5, 3, 96, 192, 64}, {60, 4, 3, 130, 96, 32}, {7, 6, 2, 33, 512, 64}}) {
        expect_experts(s, down, late);
      }
    }
  }
}

}  // namespace
}  // namespace lily
