// The experts of decoding on every device against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/code_matrix.h"
#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using test::CodeMatrix;
using test::KernelRun;
using ExpertsKernelTest = test::DeviceTest;

struct Case {
  unsigned bits;
  uint32_t n, hidden, experts, top_k, shared_parts, width, group_size;
};

kernels::MoeArgs args_of(const Case& c) {
  return {c.n, c.hidden, c.experts, c.top_k, c.shared_parts, c.width, c.group_size, c.group_size, c.experts + 3, 1e-6f};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const unsigned bits : {2u, 3u, 4u, 5u, 6u, 8u, 16u}) all.push_back({bits, 2, 192, 12, 3, 1, 64, 64});
  all.push_back({4, 1, 2048, 20, 8, 1, 32, 128});  // one whole step
  all.push_back({4, 3, 2112, 33, 2, 0, 32, 32});   // and a little more
  all.push_back({4, 2, 4160, 5, 2, 2, 32, 64});    // three
  all.push_back({16, 1, 1088, 5, 4, 2, 32, 64});
  all.push_back({8, 1, 1088, 300, 10, 1, 32, 32});
  all.push_back({4, 1, 64, 40, 31, 1, 256, 32});  // 32 slots
  all.push_back({4, 2, 128, 0, 0, 9, 96, 32});    // a dense model
  all.push_back({6, 1, 64, 0, 0, 3, 160, 32});
  return all;
}

std::string name_of(const Case& c) {
  return std::to_string(c.bits) + " bits, hidden " + std::to_string(c.hidden) + ", width " + std::to_string(c.width) +
         ", experts " + std::to_string(c.experts) + ": ";
}

struct Slots {
  std::vector<uint32_t> choices;
  std::vector<float> weights;
};

Slots slots_of(const Case& c, const std::vector<float>& logits) {
  Slots out;
  for (uint32_t t = 0; t < c.n; ++t) {
    const float* row = logits.data() + size_t{t} * (c.experts + 3);
    std::vector<uint32_t> order(c.experts);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return row[a] > row[b]; });
    double total = 0;
    for (uint32_t s = 0; s < c.top_k; ++s) total += std::exp(double{row[order[s]]});
    for (uint32_t s = 0; s < c.top_k; ++s) {
      out.choices.push_back(order[s]);
      out.weights.push_back(static_cast<float>(std::exp(double{row[order[s]]}) / total));
    }
    for (uint32_t i = 0; i < c.shared_parts; ++i) {
      out.choices.push_back(c.experts + i);
      out.weights.push_back(c.experts == 0 ? 1.0f : static_cast<float>(1 / (1 + std::exp(-double{row[c.experts]}))));
    }
  }
  return out;
}

double dot(const float* a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < b.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

TEST_P(ExpertsKernelTest, GateAndUp) {
  for (const Case& c : cases()) {
    const uint32_t slots = c.top_k + c.shared_parts, matrices = c.experts + c.shared_parts;
    const std::vector<float> x = test::normal_numbers(c.n * c.hidden, 1, 3), norm = test::normal_numbers(c.hidden, 2);
    const std::vector<float> logits = test::normal_numbers(c.n * (c.experts + 3), 3, 2);
    const CodeMatrix gate = test::random_codes(size_t{matrices} * c.width, c.hidden, c.bits, c.group_size, 4);
    const CodeMatrix up = test::random_codes(size_t{matrices} * c.width, c.hidden, c.bits, c.group_size, 5);
    const Slots want = slots_of(c, logits);
    std::vector<float> y;
    for (uint32_t t = 0; t < c.n; ++t) {
      double squares = 0;
      for (uint32_t i = 0; i < c.hidden; ++i) squares += double{x[t * c.hidden + i]} * x[t * c.hidden + i];
      std::vector<double> normed;
      for (uint32_t i = 0; i < c.hidden; ++i) {
        normed.push_back(x[t * c.hidden + i] / std::sqrt(squares / c.hidden + 1e-6) * norm[i]);
      }
      for (uint32_t s = 0; s < slots; ++s) {
        for (uint32_t r = 0; r < c.width; ++r) {
          const size_t row = size_t{want.choices[t * slots + s]} * c.width + r;
          const double g = dot(&gate.weights[row * c.hidden], normed), u = dot(&up.weights[row * c.hidden], normed);
          y.push_back(static_cast<float>(g / (1 + std::exp(-g)) * u));
        }
      }
    }
    KernelRun run = kernel("experts_gate_up_" + std::to_string(c.bits));
    run.in(x)
        .in(norm)
        .in(logits)
        .in(gate.codes)
        .in(gate.scales)
        .in(gate.biases)
        .in(up.codes)
        .in(up.scales)
        .in(up.biases);
    run.out<float>(c.n * slots * c.width);
    run.args(args_of(c)).run(c.width / 16, slots, c.n);
    // Sums of 32 terms in turn, then of some such: tens of roundings to 24 bits, twice.
    const test::Difference d = test::difference(run.floats(9), y);
    EXPECT_TRUE(d.finite && d.relative < 1e-5) << name_of(c) << d.text();
  }
}

TEST_P(ExpertsKernelTest, Down) {
  for (const Case& c : cases()) {
    const uint32_t slots = c.top_k + c.shared_parts, matrices = c.experts + c.shared_parts;
    const std::vector<float> y = test::normal_numbers(size_t{c.n} * slots * c.width, 1),
                             x = test::normal_numbers(c.n * c.hidden, 2);
    const std::vector<float> logits = test::normal_numbers(c.n * (c.experts + 3), 3, 2);
    const CodeMatrix down = test::random_codes(size_t{matrices} * c.hidden, c.width, c.bits, 32, 4);
    const Slots chosen = slots_of(c, logits);
    std::vector<float> want;
    for (uint32_t t = 0; t < c.n; ++t) {
      for (uint32_t r = 0; r < c.hidden; ++r) {
        double sum = x[t * c.hidden + r];
        for (uint32_t s = 0; s < slots; ++s) {
          const uint32_t pair = t * slots + s;
          const std::vector<double> row(y.begin() + size_t{pair} * c.width, y.begin() + (size_t{pair} + 1) * c.width);
          sum +=
              chosen.weights[pair] * dot(&down.weights[(size_t{chosen.choices[pair]} * c.hidden + r) * c.width], row);
        }
        want.push_back(static_cast<float>(sum));
      }
    }
    kernels::MoeArgs args = args_of(c);
    args.down_group_size = 32;
    KernelRun run = kernel("experts_down_" + std::to_string(c.bits));
    run.in(y).in(logits).in(down.codes).in(down.scales).in(down.biases).inout(x);
    run.args(args).run(c.hidden / 16, c.n);
    const test::Difference d = test::difference(run.floats(5), want);
    EXPECT_TRUE(d.finite && d.relative < 1e-5) << name_of(c) << d.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ExpertsKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
