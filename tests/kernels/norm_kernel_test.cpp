// rms_norm on every device against plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using NormKernelTest = test::DeviceTest;

TEST_P(NormKernelTest, NormalizesRows) {
  for (const unsigned cols : {64u, 256u, 2048u}) {
    const size_t n = 5;
    const std::vector<float> x = test::normal_numbers(n * cols, 1, 3), weight = test::normal_numbers(cols, 2);
    std::vector<float> want;
    for (size_t t = 0; t < n; ++t) {
      double sum = 0;
      for (unsigned i = 0; i < cols; ++i) sum += double{x[t * cols + i]} * x[t * cols + i];
      for (unsigned i = 0; i < cols; ++i) {
        want.push_back(static_cast<float>(x[t * cols + i] / std::sqrt(sum / cols + 1e-6) * weight[i]));
      }
    }
    const std::vector<float> got =
        kernel("rms_norm").in(x).in(weight).out<uint16_t>(n * cols).args(kernels::NormArgs{cols, 1e-6f}).run(n).bf16(2);
    const test::Difference d = test::difference(got, want);
    EXPECT_TRUE(d.finite && d.relative < 2e-3) << d.text();  // one rounding to 8 bits: 2^-9 at most
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, NormKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
