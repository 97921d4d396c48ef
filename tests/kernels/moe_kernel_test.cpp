// Routing, grouping and combining on every device against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using test::KernelRun;
using MoeKernelTest = test::DeviceTest;
constexpr uint32_t poison = 0xffffffffu;

struct Routed {
  std::vector<uint32_t> choices;
  std::vector<float> weights;
};

Routed route_by_loops(const std::vector<float>& logits, const kernels::MoeArgs& a) {
  Routed out;
  const uint32_t top_k = a.experts ? a.top_k : 0;
  for (uint32_t t = 0; t < a.n; ++t) {
    const float* row = logits.data() + size_t{t} * a.logits_stride;
    std::vector<uint32_t> order(a.experts);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) { return row[x] > row[y]; });
    double total = 0;
    for (uint32_t s = 0; s < top_k; ++s) total += std::exp(double{row[order[s]]} - row[order[0]]);
    for (uint32_t s = 0; s < top_k; ++s) {
      out.choices.push_back(order[s]);
      out.weights.push_back(static_cast<float>(std::exp(double{row[order[s]]} - row[order[0]]) / total));
    }
    for (uint32_t i = 0; i < a.shared_parts; ++i) {
      out.choices.push_back(a.experts + i);
      out.weights.push_back(a.experts ? static_cast<float>(1 / (1 + std::exp(-double{row[a.experts]}))) : 1.0f);
    }
  }
  return out;
}

TEST_P(MoeKernelTest, RoutesToTheBestExperts) {
  struct Case {
    uint32_t n, experts, top_k, shared_parts;
  };
  for (const Case c : {Case{3, 256, 8, 1},
                       {1, 512, 10, 1},
                       {5, 8, 2, 0},
                       {2, 300, 30, 2},
                       {2, 60, 4, 4},
                       {2, 512, 32, 0},
                       {1, 33, 33 - 2, 1},
                       {3, 1, 1, 1},
                       {4, 0, 0, 9}}) {
    const uint32_t stride = c.experts + 3, slots = c.top_k + c.shared_parts;
    std::vector<float> logits = test::normal_numbers(c.n * stride, 1 + c.experts, 2);
    // Ties: within a slice, between slices, at the last slot, of both zeros.
    for (uint32_t t = 1; t < c.n; ++t) {
      for (uint32_t e = 0; e < c.experts; ++e) {
        float& v = logits[t * stride + e];
        v = t == 1 ? std::round(v) : 0.0f * v;
      }
    }
    const kernels::MoeArgs args{c.n, 64, c.experts, c.top_k, c.shared_parts, 64, 32, 32, stride, 1e-6f};
    const Routed want = route_by_loops(logits, args);
    KernelRun run = kernel("route");
    run.in(logits).out<uint32_t>(c.n * slots).out<float>(c.n * slots).args(args).run(c.n);
    EXPECT_EQ(run.get<uint32_t>(1), want.choices) << c.experts;
    const test::Difference d = test::difference(run.floats(2), want.weights);
    EXPECT_TRUE(d.finite && d.relative < 2e-6) << c.experts << ": " << d.text();  // a few roundings to 24 bits
  }
}

TEST_P(MoeKernelTest, ExpertsWithoutALogitComeLast) {
  std::vector<float> logits = test::normal_numbers(256, 5, 2);
  for (int i = 0; i < 250; ++i) logits[i] = std::numeric_limits<float>::quiet_NaN();
  for (const uint32_t top_k : {4u, 20u}) {  // of which 6 have a logit
    const kernels::MoeArgs args{1, 64, 256, top_k, 0, 64, 32, 32, 256, 1e-6f};
    KernelRun run = kernel("route");
    run.in(logits).out<uint32_t>(top_k).out<float>(top_k).args(args).run(1);
    const std::vector<uint32_t> choices = run.get<uint32_t>(1);
    for (uint32_t s = 0; s < top_k; ++s) EXPECT_TRUE(choices[s] < 256 && (s >= 6 || choices[s] >= 250)) << choices[s];
    EXPECT_EQ(std::set<uint32_t>(choices.begin(), choices.end()).size(), top_k);
  }
}

struct Grouped {
  std::vector<uint32_t> counts, starts, blocks, pairs, places;
};

Grouped group_by_loops(const std::vector<uint32_t>& choices, const kernels::GroupArgs& a) {
  Grouped out;
  out.places.resize(choices.size());
  out.blocks.push_back(0);
  for (uint32_t g = 0; g < a.groups; ++g) {
    const size_t start = out.pairs.size();
    out.starts.push_back(static_cast<uint32_t>(start));
    for (uint32_t pair = 0; pair < choices.size(); ++pair) {
      if (choices[pair] != g) continue;
      out.places[pair] = static_cast<uint32_t>(out.pairs.size());
      out.pairs.push_back(pair);
    }
    out.counts.push_back(static_cast<uint32_t>(out.pairs.size() - start));
    for (size_t row = start; row < out.pairs.size(); row += a.tile_rows) {
      out.blocks.insert(out.blocks.end(), {g, static_cast<uint32_t>(row)});
      ++out.blocks[0];
    }
  }
  out.starts.push_back(static_cast<uint32_t>(out.pairs.size()));
  return out;
}

TEST_P(MoeKernelTest, GroupsPairsByExpert) {
  struct Case {
    uint32_t n, slots, groups, tile_rows;
    bool even;  // all experts alike, or few that are chosen often
  };
  for (const Case c : {Case{1, 9, 257, 16, true},
                       {17, 9, 257, 32, true},
                       {300, 9, 513, 32, false},
                       {33, 3, 5, 16, true},
                       {1000, 11, 544, 64, true},
                       {7, 1, 1, 32, true},
                       {2048, 9, 17, 64, false}}) {
    std::mt19937 random(c.n);
    std::vector<uint32_t> choices;
    for (uint32_t pair = 0; pair < c.n * c.slots; ++pair) {
      // The last group is a part of the shared expert: every token has it.
      const uint32_t g = static_cast<uint32_t>(random() % (c.groups > 1 ? c.groups - 1 : 1));
      choices.push_back(pair % c.slots + 1 == c.slots ? c.groups - 1 : c.even ? g : g / 8);
    }
    const kernels::GroupArgs args{c.n, c.slots, c.groups, c.tile_rows};
    const Grouped want = group_by_loops(choices, args);
    const size_t pairs = choices.size();
    const std::string name = "n " + std::to_string(c.n);

    KernelRun count = kernel("group_count");
    EXPECT_EQ(count.in(choices).out<uint32_t>(c.groups).args(args).run(c.groups).get<uint32_t>(1), want.counts) << name;

    KernelRun map = kernel("group_map");
    map.in(want.counts).out<uint32_t>(c.groups + 1).out<uint32_t>(want.blocks.size() + 4).args(args).run(1);
    EXPECT_EQ(map.get<uint32_t>(1), want.starts) << name;
    std::vector<uint32_t> blocks = want.blocks;
    blocks.insert(blocks.end(), 4, poison);
    EXPECT_EQ(map.get<uint32_t>(2), blocks) << name;

    KernelRun scatter = kernel("group_scatter");
    scatter.in(choices).in(want.starts).out<uint32_t>(pairs).out<uint32_t>(pairs).args(args).run(c.groups);
    EXPECT_EQ(scatter.get<uint32_t>(2), want.pairs) << name;
    EXPECT_EQ(scatter.get<uint32_t>(3), want.places) << name;
  }
}

TEST_P(MoeKernelTest, CombinesSlots) {
  struct Case {
    uint32_t n, hidden, slots;
  };
  for (const Case c : {Case{1, 64, 1}, {3, 192, 9}, {2, 2048, 12}, {2, 2112, 13}, {1, 4096, 31}}) {
    const uint32_t pairs = c.n * c.slots;
    const std::vector<float> z = test::normal_numbers(size_t{pairs} * c.hidden, 1);
    const std::vector<float> weights = test::normal_numbers(pairs, 2), x = test::normal_numbers(c.n * c.hidden, 3);
    std::vector<uint32_t> places(pairs);
    std::iota(places.begin(), places.end(), 0u);
    std::shuffle(places.begin(), places.end(), std::mt19937(4));
    std::vector<float> want;
    for (uint32_t t = 0; t < c.n; ++t) {
      for (uint32_t i = 0; i < c.hidden; ++i) {
        double sum = x[t * c.hidden + i];
        for (uint32_t s = 0; s < c.slots; ++s) {
          const uint32_t pair = t * c.slots + s;
          sum += double{weights[pair]} * z[size_t{places[pair]} * c.hidden + i];
        }
        want.push_back(static_cast<float>(sum));
      }
    }
    KernelRun run = kernel("moe_combine");
    run.in(test::as_bf16(z))
        .in(places)
        .in(weights)
        .inout(x)
        .args(kernels::CombineArgs{c.n, c.hidden, c.slots})
        .run(c.n);
    const test::Difference d = test::difference(run.floats(3), want);
    EXPECT_TRUE(d.finite && d.relative < 1e-6) << c.hidden << ": " << d.text();  // float sums of at most 32 terms
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MoeKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
