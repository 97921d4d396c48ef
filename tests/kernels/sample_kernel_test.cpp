// Sampling kernels on every device against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "support/kernel_run.h"

namespace lily {
namespace {

using SampleKernelTest = test::DeviceTest;
using test::KernelRun;
constexpr uint32_t no_token = 0xffffffffu;

struct Candidate {
  float logit;
  uint32_t id;
  bool operator==(const Candidate& other) const { return logit == other.logit && id == other.id; }
};

// The best of logits [begin, end), best first.
std::vector<Candidate> best_of(const std::vector<float>& logits, size_t begin, size_t end, size_t count) {
  std::vector<Candidate> all;
  for (size_t i = begin; i < end; ++i) {
    if (logits[i] >= std::numeric_limits<float>::lowest()) all.push_back({logits[i], static_cast<uint32_t>(i)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  all.resize(std::min(all.size(), count));
  return all;
}

std::vector<float> as_pairs(const std::vector<Candidate>& list, size_t count) {
  std::vector<float> out;
  for (const Candidate& c : list) out.insert(out.end(), {c.logit, std::bit_cast<float>(c.id)});
  while (out.size() < 2 * count) out.push_back(std::bit_cast<float>(no_token));
  return out;
}

TEST_P(SampleKernelTest, KeepsTheBestOfEachPart) {
  struct Case {
    uint32_t vocab, candidates, parts;
    int kind;  // 0 normal, 1 many ties, 2 ascending, 3 mostly NaN, 4 descending
  };
  for (const Case c : {Case{1000, 20, 1, 0},
                       {9001, 64, 2, 0},
                       {9001, 64, 2, 1},
                       {5000, 64, 1, 2},
                       {7003, 40, 3, 3},
                       {5000, 1, 2, 0},
                       {5000, 1, 2, 1},
                       {37, 20, 4, 0},
                       {9, 5, 8, 0},
                       {4100, 64, 1, 4},
                       {3, 64, 1, 0}}) {
    std::vector<float> logits = test::normal_numbers(c.vocab, c.vocab + c.kind, 4);
    for (size_t i = 0; i < logits.size(); ++i) {
      if (c.kind == 1) logits[i] = std::round(logits[i]);
      if (c.kind == 2) logits[i] = static_cast<float>(i) - 2000;
      if (c.kind == 3 && i % 100 != 0) logits[i] = std::bit_cast<float>(i % 2 ? 0x7fc00000u : 0xffffffffu);
      if (c.kind == 4) logits[i] = -static_cast<float>(i);
    }
    if (c.kind == 1) logits[1] = -std::numeric_limits<float>::infinity(), logits[7] = -0.0f, logits[8] = 0.0f;
    const size_t slice = ((c.vocab + c.parts - 1) / c.parts + 3) / 4 * 4;
    KernelRun run = kernel("sample_parts");
    run.in(logits).out<float>(2 * c.parts * c.candidates);
    run.args(kernels::SampleArgs{c.vocab, c.candidates, c.parts, 1, 1, 0, 0, 0}).run(c.parts);
    const std::vector<float> got = run.floats(1);
    for (size_t part = 0; part < c.parts; ++part) {
      const size_t begin = std::min<size_t>(part * slice, c.vocab), end = std::min<size_t>(begin + slice, c.vocab);
      const std::vector<float> want = as_pairs(best_of(logits, begin, end, c.candidates), c.candidates);
      for (size_t i = 0; i < c.candidates; ++i) {
        const float logit = got[2 * (part * c.candidates + i)], id = got[2 * (part * c.candidates + i) + 1];
        ASSERT_TRUE(logit == want[2 * i] || (std::isnan(logit) && std::isnan(want[2 * i])))
            << "vocab " << c.vocab << " kind " << c.kind << " part " << part << " place " << i << ": " << logit;
        ASSERT_EQ(std::bit_cast<uint32_t>(id), std::bit_cast<uint32_t>(want[2 * i + 1]))
            << "vocab " << c.vocab << " kind " << c.kind << " part " << part << " place " << i;
      }
    }
  }
}

// The number that a position draws, from the kernel's description.
float uniform_number(uint32_t low, uint32_t high, uint32_t position) {
  const auto mix = [](uint32_t v) {
    v = (v ^ (v >> 16)) * 0x7feb352du;
    v = (v ^ (v >> 15)) * 0x846ca68bu;
    return v ^ (v >> 16);
  };
  return static_cast<float>(mix(mix(low + (position + 1) * 0x9e3779b9u) ^ high) >> 8) * 0x1p-24f;
}

// The ids that may come out: one, or two where the draw falls within a rounding of the border between them.
std::vector<uint32_t> draws(std::vector<Candidate> list, const kernels::SampleArgs& a, uint32_t position) {
  if (a.temperature == 0 || a.candidates == 1) return {list[0].id};
  std::vector<double> weights;
  double total = 0, reached = 0;
  for (const Candidate& c : list) {
    weights.push_back(std::exp((double{c.logit} - list[0].logit) / a.temperature));
    total += weights.back();
  }
  size_t kept = 0;
  while (kept < list.size() && (a.top_p >= 1 || reached < a.top_p * total)) reached += weights[kept++];
  while (kept > 1 && weights[kept - 1] < a.min_p) --kept;
  total = 0;
  for (size_t i = 0; i < kept; ++i) total += weights[i];
  const double target = uniform_number(a.seed_low, a.seed_high, position) * total;
  std::vector<uint32_t> ids;
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    const bool last = i + 1 == kept;
    if (target > sum - 1e-5 * total && (last || target < sum + weights[i] + 1e-5 * total)) ids.push_back(list[i].id);
    sum += weights[i];
  }
  return ids;
}

struct Pick {
  std::vector<Candidate> all;  // the best of all parts
  std::vector<float> pairs;    // what sample_parts leaves
};

Pick candidates_of(const std::vector<float>& logits, const kernels::SampleArgs& a) {
  Pick pick{best_of(logits, 0, logits.size(), a.candidates), {}};
  const size_t slice = ((a.vocab + a.parts - 1) / a.parts + 3) / 4 * 4;
  for (size_t part = 0; part < a.parts; ++part) {
    const size_t begin = std::min<size_t>(part * slice, a.vocab), end = std::min<size_t>(begin + slice, a.vocab);
    const std::vector<float> some = as_pairs(best_of(logits, begin, end, a.candidates), a.candidates);
    pick.pairs.insert(pick.pairs.end(), some.begin(), some.end());
  }
  return pick;
}

TEST_P(SampleKernelTest, DrawsByTheParameters) {
  struct Case {
    uint32_t vocab, candidates, parts;
    float temperature, top_p, min_p, spread;
  };
  for (const Case c : {Case{4000, 20, 16, 1, 0.95f, 0, 2},
                       {4000, 64, 40, 0.7f, 1, 0.05f, 3},
                       {4000, 64, 3, 3, 0.5f, 0.1f, 2},
                       {4000, 64, 7, 1, 0.9f, 0, 0},
                       {4000, 20, 16, 0, 1, 0, 2},
                       {4000, 1, 16, 1, 1, 0, 2},
                       {37, 64, 9, 1, 1, 0, 1},
                       {300, 7, 300, 1, 1, 0, 2},
                       {2000, 20, 4, 1e-3f, 0.9f, 0, 2},
                       {4000, 20, 16, 1, 1e-6f, 0, 2}}) {
    const std::vector<float> logits = test::normal_numbers(c.vocab, c.vocab + c.candidates, c.spread);
    std::map<uint32_t, int> seen;
    for (uint32_t position = 0; position < 12; ++position) {
      const kernels::SampleArgs args{c.vocab, c.candidates, c.parts, c.temperature, c.top_p, c.min_p, 17, 4};
      const Pick pick = candidates_of(logits, args);
      const std::vector<uint32_t> want = draws(pick.all, args, position);
      KernelRun run = kernel("sample_pick");
      run.in(pick.pairs).inout(std::vector<kernels::SequenceStep>{{position, 99}}).out<uint32_t>(1).args(args).run(1);
      const uint32_t token = run.get<uint32_t>(2)[0];
      EXPECT_TRUE(std::find(want.begin(), want.end(), token) != want.end())
          << token << " of " << c.candidates << " at " << position << ", not " << want[0];
      const kernels::SequenceStep step = run.get<kernels::SequenceStep>(1)[0];
      EXPECT_EQ(step.token, token);
      EXPECT_EQ(step.position, position + 1);
      ++seen[token];
    }
    const bool greedy = c.temperature < 0.01f || c.candidates == 1 || c.top_p < 0.01f;
    EXPECT_EQ(greedy, seen.size() == 1) << c.candidates;
  }
}

TEST_P(SampleKernelTest, MergesWhereNoneStandsOut) {
  // One part has all of the best; equal logits everywhere; parts without candidates.
  for (const int kind : {0, 1, 2}) {
    std::vector<float> logits(20000, kind == 2 ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
    for (size_t i = 10000; i < 10100 && kind != 1; ++i) logits[i] = static_cast<float>(2 + i % 50);
    const kernels::SampleArgs args{20000, 64, 100, 100, 1, 0, 3, 5};
    const Pick pick = candidates_of(logits, args);
    for (uint32_t position = 0; position < 20; ++position) {
      KernelRun run = kernel("sample_pick");
      run.in(pick.pairs).inout(std::vector<kernels::SequenceStep>{{position, 99}}).out<uint32_t>(1).args(args).run(1);
      const std::vector<uint32_t> want = draws(pick.all, args, position);
      const uint32_t token = run.get<uint32_t>(2)[0];
      EXPECT_TRUE(std::find(want.begin(), want.end(), token) != want.end())
          << token << " at " << position << ", not " << want[0];
    }
  }
}

TEST_P(SampleKernelTest, TopPKeepsTheOneThatReachesIt) {
  const std::vector<float> logits(4, 1.0f);
  for (const auto& [top_p, kept] : {std::pair{0.2f, 1u}, {0.3f, 2u}, {0.6f, 3u}, {0.8f, 4u}, {1.0f, 4u}}) {
    const kernels::SampleArgs args{4, 20, 2, 1, top_p, 0, 3, 5};
    const Pick pick = candidates_of(logits, args);
    std::set<uint32_t> seen;
    for (uint32_t position = 0; position < 40; ++position) {
      KernelRun run = kernel("sample_pick");
      run.in(pick.pairs).inout(std::vector<kernels::SequenceStep>{{position, 99}}).out<uint32_t>(1).args(args).run(1);
      seen.insert(run.get<uint32_t>(2)[0]);
    }
    EXPECT_TRUE(seen.size() == kept && *seen.rbegin() == kept - 1) << top_p << ": " << seen.size();
  }
}

TEST_P(SampleKernelTest, WithoutAnyLogitThereIsNoToken) {
  const std::vector<float> nothing(2 * 3 * 20, std::numeric_limits<float>::quiet_NaN());
  const kernels::SampleArgs args{6000, 20, 3, 1, 1, 0, 3, 5};
  KernelRun run = kernel("sample_pick");
  run.in(nothing).inout(std::vector<kernels::SequenceStep>{{7, 99}}).out<uint32_t>(1).args(args).run(1);
  EXPECT_EQ(run.get<uint32_t>(2)[0], no_token);
  EXPECT_EQ(run.get<kernels::SequenceStep>(1)[0].token, 0u);
  EXPECT_EQ(run.get<kernels::SequenceStep>(1)[0].position, 8u);
}

TEST_P(SampleKernelTest, NumbersAreEvenOverPositionsAndSeeds) {
  // What the test's own copy of the generator gives is what the kernel draws by (above): 16 equal classes of 4096 numbers each
  // hold 256 +- 6 deviations.
  for (const bool over_seeds : {false, true}) {
    std::vector<int> classes(16);
    for (uint32_t i = 0; i < 4096; ++i) {
      ++classes[static_cast<size_t>(16 * (over_seeds ? uniform_number(i, 0, 5) : uniform_number(1, 2, i)))];
    }
    for (const int count : classes) EXPECT_NEAR(count, 256, 96);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SampleKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
