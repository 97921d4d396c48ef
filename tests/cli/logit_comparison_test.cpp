#include "cli/logit_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "model/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace lily::cli {
namespace {

using testing::HasSubstr;

std::string file_of(const std::string& name, std::vector<int64_t> shape, const std::vector<float>& values,
                    const std::string& tensor = "logits") {
  static const test::TemporaryDirectory directory;  // the cases run at the same time
  const std::string path = directory / name;
  std::filesystem::remove(path);
  const TensorSpec spec{.name = tensor, .dtype = DType::f32, .shape = std::move(shape)};
  const std::span<const std::byte> data = std::as_bytes(std::span(values));
  EXPECT_TRUE(write_safetensors(path, {&spec, 1}, {&data, 1}).ok());
  return path;
}

TEST(LogitComparison, ReportsEveryFigure) {
  // b's margins: 2, 0.25, 0.0005, 8.9. a differs in one element of the second row, and so in its best id.
  const std::vector<float> b = {3, 1, 0, 1, 1.25f, 0, 5, 0, 5.0005f, 1, 1.1f, 10};
  std::vector<float> a = b;
  a[3] = 1.5f;
  const auto result = compare_logits(file_of("a", {4, 3}, a), file_of("b", {4, 3}, b), {-1, 1e-3, 0.5});
  ASSERT_TRUE(result.ok()) << result.error().message();
  double squares = 0;
  for (const float x : b) squares += double{x} * x;
  EXPECT_NEAR(result->relative_error, 0.5 / std::sqrt(squares), 1e-12);
  EXPECT_EQ(result->largest_error, 0.5);
  EXPECT_EQ(result->position, 1);
  EXPECT_EQ(result->id, 0);
  EXPECT_EQ(result->a, 1.5f);
  EXPECT_EQ(result->b, 1.0f);
  const std::pair<int64_t, int64_t> expected[] = {{4, 3}, {3, 2}, {2, 2}};  // positions, equal
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result->agreements[i].positions, expected[i].first) << i;
    EXPECT_EQ(result->agreements[i].equal, expected[i].second) << i;
  }
  // KL of the second row by its definition.
  const double sum_a = std::exp(1.5) + std::exp(1.25) + 1, sum_b = std::exp(1.0) + std::exp(1.25) + 1;
  const double kl = std::exp(1.0) / sum_b * (1.0 - 1.5) + std::log(sum_a) - std::log(sum_b);
  EXPECT_NEAR(result->mean_kl, kl / 4, 1e-9);
}

TEST(LogitComparison, OfAFileWithItselfIsZero) {
  const std::string path = file_of("same", {2, 2}, {1, 2, -3, 4});
  const auto result = compare_logits(path, path, {-1});
  EXPECT_EQ(result->relative_error, 0);
  EXPECT_EQ(result->largest_error, 0);
  EXPECT_EQ(result->mean_kl, 0);
  EXPECT_EQ(result->agreements[0].equal, 2);
}

TEST(LogitComparison, WhatCannotBeComparedIsAnError) {
  const std::string good = file_of("good", {2, 2}, {1, 2, 3, 4});
  const auto message = [&](const std::string& path) { return compare_logits(path, good, {}).error().message(); };
  EXPECT_THAT(message(file_of("shape", {1, 4}, {1, 2, 3, 4})),
              HasSubstr("shapes differ: expected F32 [2, 2], got F32 [1, 4]"));
  EXPECT_THAT(message(file_of("name", {2, 2}, {1, 2, 3, 4}, "logit")), HasSubstr("no tensor named logits"));
  EXPECT_THAT(message(file_of("rank", {4}, {1, 2, 3, 4})), HasSubstr("wrong tensor"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message(file_of("nan", {2, 2}, {1, 2, 3, nan})), HasSubstr("not finite at position 1, id 1"));
  EXPECT_THAT(message(test::TemporaryDirectory() / "absent"), HasSubstr("cannot open"));
}

}  // namespace
}  // namespace lily::cli
