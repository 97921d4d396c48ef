#include "cli/scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/fake_backend.h"

namespace lily::cli {
namespace {

using test::FakeBackend;
using testing::ElementsAre;

const std::vector<int32_t> tokens = {1, 2, 3, 0, 1, 2, 3, 0, 1, 2};

TEST(Score, GivesTheLogitsOfEveryPositionWhateverTheChunk) {
  const auto logits_in_chunks = [](int64_t chunk) {
    FakeBackend backend(7);
    std::vector<float> all;
    std::vector<int64_t> firsts;
    const Result<void> scored =
        score(backend, tokens, {.chunk = chunk}, [&](int64_t first, std::span<const float> logits) -> Result<void> {
          EXPECT_EQ(first * 7, static_cast<int64_t>(all.size()));
          all.insert(all.end(), logits.begin(), logits.end());
          return {};
        });
    EXPECT_TRUE(scored.ok());
    return all;
  };
  const std::vector<float> whole = logits_in_chunks(100);
  EXPECT_EQ(whole.size(), tokens.size() * 7);
  for (const int64_t chunk : {1, 3, 10}) EXPECT_EQ(logits_in_chunks(chunk), whole);
}

TEST(Score, ErrorsOfTheModelAndOfTheCallerEndIt) {
  FakeBackend backend(3);  // 3 is outside the vocabulary
  EXPECT_FALSE(score(backend, tokens, {}, [](int64_t, std::span<const float>) { return Result<void>(); }).ok());
  FakeBackend good(7);
  const auto full_disk = [](int64_t, std::span<const float>) -> Result<void> { return Error{.what = "disk is full"}; };
  EXPECT_EQ(score(good, tokens, {}, full_disk).error().what, "disk is full");
}

// The scripted logits are 20 for the next token and 0 for the others.
TEST(Perplexity, OfAModelThatKnowsTheText) {
  FakeBackend counts(4, 1 << 20, [](const auto& history) { return (history.back() + 1) % 4; });
  const auto right = perplexity(counts, tokens, 0, {.chunk = 3});
  ASSERT_TRUE(right.ok());
  EXPECT_EQ(right->scored, 9);
  EXPECT_NEAR(right->mean_nll(), std::log(1 + 3 * std::exp(-20.0)), 1e-12);
  FakeBackend stuck(4, 1 << 20, [](const auto& history) { return history.back(); });
  EXPECT_NEAR(perplexity(stuck, tokens, 0, {})->mean_nll(), 20 + std::log(1 + 3 * std::exp(-20.0)), 1e-9);
}

TEST(Perplexity, WindowsStartAfresh) {
  std::vector<size_t> lengths;
  FakeBackend backend(4, 1 << 20, [&](const auto& history) { return lengths.push_back(history.size()), 0; });
  EXPECT_EQ(perplexity(backend, tokens, 4, {.chunk = 3})->scored, 7);  // 3 of 4, 3 of 4, 1 of 2
  EXPECT_THAT(lengths, ElementsAre(1, 2, 3, 4, 1, 2, 3, 4, 1, 2));
}

TEST(Perplexity, TheContextBoundsTheWindow) {
  FakeBackend backend(4, 5);
  EXPECT_EQ(perplexity(backend, tokens, 0, {})->scored, 8);
  EXPECT_EQ(perplexity(backend, tokens, 100, {})->scored, 8);
}

TEST(Perplexity, AnIdOutsideTheVocabularyIsAnErrorInAnyChunk) {
  FakeBackend backend(3);  // 3 is outside
  for (const int64_t chunk : {1, 2, 3, 10}) EXPECT_FALSE(perplexity(backend, tokens, 0, {.chunk = chunk}).ok());
}

TEST(Perplexity, NeedsTwoTokens) {
  FakeBackend backend(4);
  EXPECT_FALSE(perplexity(backend, std::span(tokens).first(1), 0, {}).ok());
}

}  // namespace
}  // namespace lily::cli
