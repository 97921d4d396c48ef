// norm_gemv, gemv_add and embed of every width on every device against plain loops.
//
// Float32 throughout: sums of up to 4096 products in another order differ by a few 1e-6 of their norm; the code trick of
// unit_rows.h adds an offset that costs some bits of the sum (1e-5).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/code_matrix.h"
#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using GemvKernelTest = test::DeviceTest;

struct Shape {
  unsigned rows, cols, group_size;
};

// Few rows, ragged rows; one step, several, and pieces of one: 33 units are one lane of the second 32. The last is as long as
// the rows of a dense model's MLP.
const Shape shapes[] = {{37, 64, 32},   {16, 256, 64}, {5, 2048, 64},  {19, 2304, 128}, {33, 4096, 64},
                        {1, 1024, 128}, {7, 1056, 32}, {3, 17408, 64}, {70, 5120, 64}};

// One row a simdgroup up to four, one pass and several.
std::pair<kernels::GemvArgs, unsigned> cut(Shape shape, unsigned bits) {
  const unsigned simd_rows = bits % 4 + 1, passes = shape.rows % 3 + 1, rows = 8 * simd_rows * passes;
  return {{shape.rows, shape.cols, shape.group_size, 1e-6f, simd_rows, passes}, (shape.rows + rows - 1) / rows};
}

// Floats behind a result that a kernel must leave alone.
constexpr size_t guards = 20;

// Takes them off; they hold `value` still.
std::vector<float> without_guards(std::vector<float> y, float value) {
  for (size_t i = y.size() - guards; i < y.size(); ++i) {
    EXPECT_TRUE(y[i] == value || (std::isnan(y[i]) && std::isnan(value))) << "written behind the result: " << y[i];
  }
  y.resize(y.size() - guards);
  return y;
}

std::vector<float> product(const test::CodeMatrix& m, Shape shape, const std::vector<float>& x) {
  std::vector<float> y;
  for (size_t t = 0; t < x.size() / shape.cols; ++t) {
    for (size_t r = 0; r < shape.rows; ++r) {
      double sum = 0;
      for (size_t i = 0; i < shape.cols; ++i) sum += double{m.weights[r * shape.cols + i]} * x[t * shape.cols + i];
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

void expect_close(const std::vector<float>& got, const std::vector<float>& want, unsigned bits, Shape shape) {
  const test::Difference d = test::difference(got, want);
  EXPECT_TRUE(d.finite && d.relative < 3e-5)
      << bits << " bits, " << shape.rows << " x " << shape.cols << ": " << d.text();
}

TEST_P(GemvKernelTest, NormGemv) {
  for (const unsigned bits : {2u, 3u, 4u, 5u, 6u, 8u, 16u}) {
    for (const Shape shape : shapes) {
      const size_t n = 2;
      const test::CodeMatrix m = test::random_codes(shape.rows, shape.cols, bits, shape.group_size, bits);
      std::vector<float> x = test::normal_numbers(n * shape.cols, 1, 2);
      const std::vector<float> weight = test::normal_numbers(shape.cols, 2);
      for (size_t i = shape.cols; i < x.size(); ++i) x[i] /= 2048;  // squares of about the norm's epsilon
      std::vector<float> normed;
      for (size_t t = 0; t < n; ++t) {
        double squares = 0;
        for (size_t i = 0; i < shape.cols; ++i) squares += double{x[t * shape.cols + i]} * x[t * shape.cols + i];
        const double scale = 1 / std::sqrt(squares / shape.cols + 1e-6);
        for (size_t i = 0; i < shape.cols; ++i) {
          normed.push_back(static_cast<float>(x[t * shape.cols + i] * scale * weight[i]));
        }
      }
      test::KernelRun run = kernel("norm_gemv_" + std::to_string(bits));
      run.in(x).in(weight).in(m.codes).in(m.scales).in(m.biases).out<float>(n * shape.rows + guards);
      const auto [args, groups] = cut(shape, bits);
      run.args(args).run(groups, n);
      expect_close(without_guards(run.floats(5), std::numeric_limits<float>::quiet_NaN()), product(m, shape, normed),
                   bits, shape);
    }
  }
}

TEST_P(GemvKernelTest, GemvAdd) {
  for (const unsigned bits : {2u, 3u, 4u, 5u, 6u, 8u, 16u}) {
    for (const Shape shape : shapes) {
      const size_t n = 2;
      const test::CodeMatrix m = test::random_codes(shape.rows, shape.cols, bits, shape.group_size, bits);
      const std::vector<float> x = test::normal_numbers(n * shape.cols, 3);
      std::vector<float> y = test::normal_numbers(n * shape.rows, 4);
      std::vector<float> want = product(m, shape, x);
      for (size_t i = 0; i < want.size(); ++i) want[i] += y[i];
      y.resize(y.size() + guards, 7);
      test::KernelRun run = kernel("gemv_add_" + std::to_string(bits));
      run.in(x).in(m.codes).in(m.scales).in(m.biases).inout(y);
      const auto [args, groups] = cut(shape, bits);
      run.args(args).run(groups, n);
      expect_close(without_guards(run.floats(4), 7), want, bits, shape);
    }
  }
}

TEST_P(GemvKernelTest, Embed) {
  for (const unsigned bits : {2u, 3u, 4u, 5u, 6u, 8u, 16u}) {
    for (const unsigned cols : {320u, 5120u}) {  // 160 units: more than threads
      const unsigned vocab = 50;
      const test::CodeMatrix m = test::random_codes(vocab, cols, bits, 64, bits);
      const std::vector<int32_t> tokens = {49, 0, 7};
      std::vector<float> want;
      for (const int32_t token : tokens) {
        want.insert(want.end(), m.weights.begin() + token * cols, m.weights.begin() + (token + 1) * cols);
      }
      test::KernelRun run = kernel("embed_" + std::to_string(bits));
      run.in(tokens).in(m.codes).in(m.scales).in(m.biases).out<float>(tokens.size() * cols + guards);
      run.args(kernels::EmbedArgs{3, cols, 64, vocab}).run(1, 3);
      const std::vector<float> got = without_guards(run.floats(4), std::numeric_limits<float>::quiet_NaN());
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-7) << bits << " bits, element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GemvKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
