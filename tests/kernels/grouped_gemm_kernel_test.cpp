// The experts of a chunk on every device against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/code_matrix.h"
#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using test::CodeMatrix;
using test::KernelRun;
using GroupedGemmKernelTest = test::DeviceTest;

struct Case {
  unsigned tile_rows, bits;
  uint32_t n, slots, groups, hidden, width, group_size;
};

std::string name_of(const Case& c) {
  return std::to_string(c.tile_rows) + "_" + std::to_string(c.bits) + ", n " + std::to_string(c.n) + ", hidden " +
         std::to_string(c.hidden) + ", width " + std::to_string(c.width) + ": ";
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const unsigned bits : {2u, 3u, 4u, 5u, 6u, 8u, 16u}) all.push_back({32, bits, 11, 3, 5, 64, 32, 32});
  for (const unsigned bits : {4u, 8u, 16u}) {
    all.push_back({16, bits, 17, 3, 4, 128, 64, 64});
    all.push_back({64, bits, 67, 2, 3, 128, 96, 32});
  }
  all.push_back({32, 4, 1, 1, 1, 192, 32, 32});
  all.push_back({32, 4, 33, 9, 20, 64, 160, 32});
  all.push_back({64, 4, 130, 1, 2, 320, 32, 32});
  return all;
}

// Every token has the last group (a shared expert), and groups that no other of its slots has. One group stays empty if there
// are enough.
struct Groups {
  std::vector<uint32_t> pairs, starts, blocks, group_of_row;
};

Groups groups_of(const Case& c) {
  std::mt19937 random(c.n);
  std::vector<uint32_t> choices;
  for (uint32_t t = 0; t < c.n; ++t) {
    const uint32_t first = static_cast<uint32_t>(random());
    for (uint32_t s = 0; s + 1 < c.slots; ++s) choices.push_back((first + s) % std::max(1u, c.groups - 2));
    choices.push_back(c.groups - 1);
  }
  Groups out;
  out.blocks.push_back(0);
  for (uint32_t g = 0; g < c.groups; ++g) {
    const size_t start = out.pairs.size();
    out.starts.push_back(static_cast<uint32_t>(start));
    for (uint32_t pair = 0; pair < choices.size(); ++pair) {
      if (choices[pair] == g) out.pairs.push_back(pair);
    }
    out.group_of_row.resize(out.pairs.size(), g);
    for (size_t row = start; row < out.pairs.size(); row += c.tile_rows) {
      out.blocks.insert(out.blocks.end(), {g, static_cast<uint32_t>(row)});
      ++out.blocks[0];
    }
  }
  out.starts.push_back(static_cast<uint32_t>(out.pairs.size()));
  // Last first, so that rows written behind the end of a group stay wrong.
  for (size_t i = 1, j = out.blocks.size() - 2; i < j; i += 2, j -= 2) {
    std::swap(out.blocks[i], out.blocks[j]);
    std::swap(out.blocks[i + 1], out.blocks[j + 1]);
  }
  return out;
}

// In bf16, as tiles hold weights.
double dot(const float* weights, const float* x, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += double{bf16_to_float(float_to_bf16(weights[i]))} * x[i];
  return sum;
}

TEST_P(GroupedGemmKernelTest, GateAndUp) {
  for (const Case& c : cases()) {
    const Groups groups = groups_of(c);
    const std::vector<float> x = test::normal_numbers(c.n * c.hidden, 1);
    const CodeMatrix gate = test::random_codes(c.groups * c.width, c.hidden, c.bits, c.group_size, 2);
    const CodeMatrix up = test::random_codes(c.groups * c.width, c.hidden, c.bits, c.group_size, 3);
    std::vector<float> want;
    for (size_t row = 0; row < groups.pairs.size(); ++row) {
      const float* token = &x[groups.pairs[row] / c.slots * c.hidden];
      for (uint32_t i = 0; i < c.width; ++i) {
        const size_t at = (size_t{groups.group_of_row[row]} * c.width + i) * c.hidden;
        const double g = dot(&gate.weights[at], token, c.hidden), u = dot(&up.weights[at], token, c.hidden);
        want.push_back(static_cast<float>(g / (1 + std::exp(-g)) * u));
      }
    }
    KernelRun run = kernel("moe_gate_up_" + std::to_string(c.tile_rows) + "_" + std::to_string(c.bits));
    run.in(test::as_bf16(x)).in(groups.pairs).in(groups.starts).in(groups.blocks);
    run.in(gate.codes).in(gate.scales).in(gate.biases).in(up.codes).in(up.scales).in(up.biases);
    run.out<uint16_t>(groups.pairs.size() * c.width);
    run.args(kernels::GroupedGemmArgs{c.width, c.hidden, c.group_size, c.slots});
    run.run(c.width / 32, groups.blocks[0] + 2);
    // Rounding to 8 bits: 2^-9 at most, and now and then a weight that rounds the other way by the order of operations.
    const test::Difference d = test::difference(run.bf16(10), want);
    EXPECT_TRUE(d.finite && d.relative < 2e-3) << name_of(c) << d.text();
  }
}

TEST_P(GroupedGemmKernelTest, Down) {
  for (const Case& c : cases()) {
    const Groups groups = groups_of(c);
    const std::vector<float> y = test::normal_numbers(groups.pairs.size() * c.width, 1);
    const CodeMatrix down = test::random_codes(c.groups * c.hidden, c.width, c.bits, 32, 2);
    std::vector<float> want;
    for (size_t row = 0; row < groups.pairs.size(); ++row) {
      for (uint32_t i = 0; i < c.hidden; ++i) {
        const size_t at = (size_t{groups.group_of_row[row]} * c.hidden + i) * c.width;
        want.push_back(static_cast<float>(dot(&down.weights[at], &y[row * c.width], c.width)));
      }
    }
    KernelRun run = kernel("moe_down_" + std::to_string(c.tile_rows) + "_" + std::to_string(c.bits));
    run.in(test::as_bf16(y)).in(groups.starts).in(groups.blocks).in(down.codes).in(down.scales).in(down.biases);
    run.out<uint16_t>(groups.pairs.size() * c.hidden);
    run.args(kernels::GroupedGemmArgs{c.hidden, c.width, 32, c.slots});
    run.run(c.hidden / 64, groups.blocks[0] + 2);
    const test::Difference d = test::difference(run.bf16(6), want);
    EXPECT_TRUE(d.finite && d.relative < 2e-3) << name_of(c) << d.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupedGemmKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
