// gemm of every tile and width on every device against plain loops over the same bf16 activations and bf16-rounded weights:
// what remains is the order of float32 sums (1e-6), and one rounding where the result is bf16 (2^-9).
#include <gtest/gtest.h>

#include "support/code_matrix.h"
#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using kernels::GemmOutput;

using GemmKernelTest = test::DeviceTest;

struct Shape {
  unsigned n, rows, first_row, cols, group_size;
};

TEST_P(GemmKernelTest, EveryTileAndWidth) {
  struct Variant {
    unsigned tile, bits;
  };
  std::vector<Variant> variants;
  for (const unsigned bits : {2u, 3u, 4u, 5u, 6u, 8u, 16u}) variants.push_back({32, bits});
  for (const unsigned tile : {16u, 64u}) {
    for (const unsigned bits : {4u, 8u, 16u}) variants.push_back({tile, bits});
  }
  const Shape shapes[] = {{1, 64, 0, 64, 64}, {17, 40, 8, 96, 32}, {70, 130, 3, 256, 64}, {65, 64, 0, 192, 64}};
  for (const Variant& v : variants) {
    for (const Shape& s : shapes) {
      const test::CodeMatrix m = test::random_codes(s.first_row + s.rows, s.cols, v.bits, s.group_size, v.bits);
      const std::vector<float> x = test::normal_numbers(size_t{s.n} * s.cols, 1);
      for (const GemmOutput output : {kernels::gemm_store_bf16, kernels::gemm_store_f32, kernels::gemm_add_f32}) {
        const unsigned stride = s.rows + 6;
        const bool halves = output == kernels::gemm_store_bf16, adds = output == kernels::gemm_add_f32;
        // What lies beside the result and in a tile behind it stays as it was.
        const std::vector<float> y = test::normal_numbers(size_t{s.n + 64} * stride, 2);
        test::KernelRun run = kernel("gemm_" + std::to_string(v.tile) + "_" + std::to_string(v.bits));
        run.in(test::as_bf16(x)).in(m.codes).in(m.scales).in(m.biases);
        halves ? run.in(test::as_bf16(y)) : run.in(y);
        run.args(kernels::GemmArgs{s.n, s.rows, s.first_row, s.cols, s.group_size, stride, output});
        run.run((s.rows + 63) / 64, (s.n + v.tile - 1) / v.tile);
        const std::vector<float> got = halves ? run.bf16(4) : run.floats(4);
        std::vector<float> want = y;
        for (size_t t = 0; t < s.n; ++t) {
          for (size_t r = 0; r < s.rows; ++r) {
            double sum = adds ? y[t * stride + r] : 0;
            for (size_t i = 0; i < s.cols; ++i) {
              const float w = m.weights[(s.first_row + r) * s.cols + i];
              sum += double{bf16_to_float(float_to_bf16(w))} * x[t * s.cols + i];
            }
            want[t * stride + r] = static_cast<float>(sum);
          }
        }
        const test::Difference d = test::difference(got, want);
        EXPECT_TRUE(d.finite && d.relative < (halves ? 2e-3 : 1e-5))
            << "tile " << v.tile << ", " << v.bits << " bits, n " << s.n << ", output " << output << ": " << d.text();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GemmKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
