#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

namespace lily {
namespace {

// Plain softmax sampling: nothing cut, nothing penalised.
SamplingParams plain(uint64_t seed = 1) { return {.top_k = 0, .top_p = 1.0f, .seed = seed}; }

int32_t sample(Sampler& sampler, std::vector<float> logits) {
  const Result<int32_t> token = sampler.sample(logits);
  EXPECT_TRUE(token.ok()) << token.error().message();
  return token.ok() ? *token : -1;
}

// How often each id comes in `draws` independent replies of one token.
std::map<int32_t, int> histogram(SamplingParams params, const std::vector<float>& logits, int draws) {
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    params.seed = static_cast<uint64_t>(i);
    Sampler sampler(params, static_cast<int32_t>(logits.size()));
    ++counts[sample(sampler, logits)];
  }
  return counts;
}

std::set<int32_t> possible(const SamplingParams& params, const std::vector<float>& logits) {
  std::set<int32_t> ids;
  for (const auto& [id, count] : histogram(params, logits, 2000)) ids.insert(id);
  return ids;
}

std::vector<float> log_of(std::vector<float> probabilities) {
  for (float& p : probabilities) p = std::log(p);
  return probabilities;
}

const std::vector<float> four = log_of({0.1f, 0.4f, 0.2f, 0.3f});

// Counts of a multinomial: five standard deviations and the seeds are fixed, so this either always passes or never.
void expect_distribution(const std::map<int32_t, int>& counts, const std::vector<double>& probabilities, int draws) {
  for (size_t id = 0; id < probabilities.size(); ++id) {
    const double p = probabilities[id];
    const auto found = counts.find(static_cast<int32_t>(id));
    const double seen = found == counts.end() ? 0 : found->second;
    EXPECT_NEAR(seen, p * draws, 5 * std::sqrt(draws * p * (1 - p)) + 1e-9) << "id " << id;
  }
}

TEST(Sampler, DrawsFromTheSoftmax) {
  expect_distribution(histogram(plain(), four, 20000), {0.1, 0.4, 0.2, 0.3}, 20000);
}

TEST(Sampler, OneSamplersSuccessiveDrawsFollowTheSoftmaxToo) {
  Sampler sampler(plain(), 4);
  std::map<int32_t, int> counts;
  for (int i = 0; i < 20000; ++i) ++counts[sample(sampler, four)];
  expect_distribution(counts, {0.1, 0.4, 0.2, 0.3}, 20000);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  SamplingParams params = plain();
  params.temperature = 0.5f;  // p squared, normalised by 0.30
  expect_distribution(histogram(params, four, 20000), {0.01 / 0.30, 0.16 / 0.30, 0.04 / 0.30, 0.09 / 0.30}, 20000);
}

TEST(Sampler, TemperatureZeroIsGreedyAndTiesGoToTheLowestId) {
  Sampler sampler({.temperature = 0}, 5);
  EXPECT_EQ(sample(sampler, {1, 3, 2, 3, 3}), 1);
  EXPECT_EQ(sample(sampler, {-1, -3, -0.5f, -9, -7}), 2);
}

TEST(Sampler, TinyTemperatureIsGreedyWithoutOverflow) {
  Sampler sampler({.temperature = 1e-40f}, 3);
  EXPECT_EQ(sample(sampler, {1, 3e38f, -3e38f}), 1);
}

TEST(Sampler, TopKKeepsTheLikeliest) {
  SamplingParams params = plain();
  params.top_k = 2;
  EXPECT_EQ(possible(params, four), (std::set<int32_t>{1, 3}));
  params.top_k = 1;
  EXPECT_EQ(possible(params, four), (std::set<int32_t>{1}));
  params.top_k = 100;
  EXPECT_EQ(possible(params, four).size(), 4u);
}

TEST(Sampler, TopKTiesGoToTheLowestIds) {
  SamplingParams params = plain();
  params.top_k = 3;
  EXPECT_EQ(possible(params, std::vector<float>(50, 1.0f)), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  SamplingParams params = plain();
  params.top_p = 0.65f;  // 0.4 + 0.3
  EXPECT_EQ(possible(params, four), (std::set<int32_t>{1, 3}));
  params.top_p = 0.75f;
  EXPECT_EQ(possible(params, four), (std::set<int32_t>{1, 2, 3}));
  params.top_p = 1e-6f;
  EXPECT_EQ(possible(params, four), (std::set<int32_t>{1}));
}

TEST(Sampler, TopPSeesWhatTopKLeft) {
  SamplingParams params = plain();
  params.top_k = 2;      // leaves 4/7 and 3/7
  params.top_p = 0.55f;  // of the whole it would take two, of the two one is enough
  EXPECT_EQ(possible(params, four), (std::set<int32_t>{1}));
}

TEST(Sampler, TopPOverAFlatVocabularyNeedsManyTokens) {
  SamplingParams params = plain();
  params.top_p = 0.5f;
  const std::set<int32_t> ids = possible(params, std::vector<float>(1000, 0.0f));
  EXPECT_GT(ids.size(), 400u);
  EXPECT_LT(*ids.rbegin(), 501);  // ties by id: the first half, give or take one rounding
}

TEST(Sampler, MinPIsRelativeToTheLikeliest) {
  SamplingParams params = plain();
  params.min_p = 0.6f;  // of 0.4: at least 0.24
  EXPECT_EQ(possible(params, four), (std::set<int32_t>{1, 3}));
}

TEST(Sampler, SameSeedSameTokens) {
  const auto tokens = [](uint64_t seed) {
    Sampler sampler(plain(seed), 64);
    std::vector<int32_t> ids;
    for (int i = 0; i < 32; ++i) ids.push_back(sample(sampler, std::vector<float>(64, 0.0f)));
    return ids;
  };
  EXPECT_EQ(tokens(7), tokens(7));
  EXPECT_NE(tokens(7), tokens(8));
}

// The generator's published test vector (seed 1234567), so that a seed means the same everywhere.
TEST(Random, IsSplitMix64) {
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
}

// What the first sampled token, id 0, does to its logit in the second step.
float second_logit(SamplingParams params, float logit) {
  params.temperature = 0;
  Sampler sampler(params, 2);
  std::vector<float> first = {100, 0};
  EXPECT_TRUE(sampler.sample(first).ok());
  std::vector<float> second = {logit, -100};
  EXPECT_TRUE(sampler.sample(second).ok());
  EXPECT_EQ(second[1], -100);
  return second[0];
}

TEST(Sampler, LogitBiasIsAddedBeforeThePenalties) {
  Sampler banned({.temperature = 0, .logit_bias = {{1, -100.0f}}}, 4);
  EXPECT_EQ(sample(banned, four), 3);
  Sampler forced({.temperature = 0, .repetition_penalty = 4, .logit_bias = {{0, 8.0f}}}, 4);
  EXPECT_EQ(sample(forced, {1, 3, 3, 3}), 0);
  EXPECT_EQ(sample(forced, {1, 3, 3, 3}), 1);  // (1 + 8) / 4 is less than 3
  EXPECT_EQ(sample(forced, {8, 3, 3, 3}), 0);  // (8 + 8) / 4 is more
  Sampler beyond({.temperature = 0, .logit_bias = {{7, 9.0f}}}, 4);
  EXPECT_EQ(sample(beyond, {1, 3, 2, 0, 0, 0, 0, 0}), 1);
}

TEST(Sampler, RepetitionPenaltyDividesPositiveAndMultipliesNegative) {
  SamplingParams params = plain();
  params.repetition_penalty = 1.25f;
  EXPECT_FLOAT_EQ(second_logit(params, 5), 4);
  EXPECT_FLOAT_EQ(second_logit(params, -4), -5);
}

TEST(Sampler, PresencePenaltyIsSubtracted) {
  SamplingParams params = plain();
  params.presence_penalty = 1.5f;
  EXPECT_FLOAT_EQ(second_logit(params, 5), 3.5f);
}

TEST(Sampler, PenaltiesAreAppliedRepetitionFirst) {
  SamplingParams params = plain();
  params.repetition_penalty = 2;
  params.presence_penalty = 1;
  EXPECT_FLOAT_EQ(second_logit(params, 5), 1.5f);
}

// Fixed logits over three steps change as the definition says.
TEST(Sampler, TH_14_FrequencyPenaltyCountsEveryTime) {
  Sampler sampler({.temperature = 0, .frequency_penalty = 2}, 3);
  for (const float expected : {10.0f, 8.0f, 6.0f}) {
    std::vector<float> logits = {10, 0, 0};
    EXPECT_EQ(*sampler.sample(logits), 0);
    EXPECT_FLOAT_EQ(logits[0], expected);
  }
}

// A sampler never learns the prompt, so its tokens cannot be penalised before they are generated.
TEST(Sampler, TH_13_NothingIsPenalisedBeforeItIsGenerated) {
  Sampler sampler({.temperature = 0, .repetition_penalty = 3, .presence_penalty = 1.5f, .frequency_penalty = 2}, 3);
  std::vector<float> logits = {1, 2, 3};
  EXPECT_EQ(*sampler.sample(logits), 2);
  EXPECT_EQ(logits, (std::vector<float>{1, 2, 3}));
}

TEST(Sampler, IdsBeyondTheTokenizerAreNeverSampled) {
  std::vector<float> logits(300, 0.0f);
  for (size_t i = 200; i < 300; ++i) logits[i] = 50;
  Sampler greedy({.temperature = 0}, 200);
  EXPECT_EQ(sample(greedy, logits), 0);
  Sampler sampler(plain(), 200);
  for (int i = 0; i < 200; ++i) EXPECT_LT(sample(sampler, logits), 200);
}

TEST(Sampler, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const float temperature : {0.0f, 1.0f}) {
      std::vector<float> logits(100, 1.0f);
      logits[77] = bad;
      Sampler sampler({.temperature = temperature}, 100);
      const Result<int32_t> token = sampler.sample(logits);
      ASSERT_FALSE(token.ok());
      EXPECT_NE(token.error().message().find("logits are not finite"), std::string::npos);
    }
  }
}

TEST(SamplingParams, OutOfRangeIsAnErrorThatNamesTheParameter) {
  EXPECT_TRUE(check(SamplingParams{}).ok());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<SamplingParams, std::string>> cases = {
      {{.temperature = -1}, "temperature"},
      {{.temperature = nan}, "temperature"},
      {{.top_k = -1}, "top_k"},
      {{.top_p = 0}, "top_p"},
      {{.top_p = 1.5f}, "top_p"},
      {{.min_p = -0.1f}, "min_p"},
      {{.min_p = 2}, "min_p"},
      {{.repetition_penalty = 0}, "repetition_penalty"},
      {{.presence_penalty = 3}, "presence_penalty"},
      {{.frequency_penalty = nan}, "frequency_penalty"},
      {{.logit_bias = {{3, nan}}}, "logit_bias"},
      {{.logit_bias = {{-1, 1.0f}}}, "logit_bias"},
  };
  for (const auto& [params, name] : cases) {
    const Result<void> result = check(params);
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.error().where, name);
  }
}

// The budget is 1 ms of a token of the real vocabulary; the bound leaves room for a busy machine and sanitizers.
TEST(Sampler, IsFastForTheRealVocabulary) {
  constexpr int vocab = 248320;
  Random random(3);
  std::vector<float> logits(vocab);
  for (float& logit : logits) logit = static_cast<float>(12 * random.uniform() * random.uniform() * random.uniform());
  const auto milliseconds = [&](SamplingParams params) {
    Sampler sampler(params, vocab);
    double best = 1e9;
    for (int i = 0; i < 10; ++i) {
      std::vector<float> copy = logits;
      const auto start = std::chrono::steady_clock::now();
      EXPECT_TRUE(sampler.sample(copy).ok());
      best =
          std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  const double top_k = milliseconds({.top_k = 20, .top_p = 0.95f});
  const double greedy = milliseconds({.temperature = 0});
  const double top_p = milliseconds({.top_k = 0, .top_p = 0.95f});
  std::printf("greedy %.3f ms, top-k 20 %.3f ms, top-p alone %.3f ms\n", greedy, top_k, top_p);
  EXPECT_LT(top_k, 20);
}

}  // namespace
}  // namespace lily
