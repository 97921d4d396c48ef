#include "cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace lily::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file_with(const std::string& text) {
  static const test::TemporaryDirectory directory;  // the cases run at the same time
  const std::string path = directory / "tokens";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(TokenFile, AnyWhiteSpaceSeparates) {
  const auto ids = read_token_file(file_with("  1 2\t3\r\n\n40\v0 2147483647"));
  ASSERT_TRUE(ids.ok()) << ids.error().message();
  EXPECT_THAT(*ids, ElementsAre(1, 2, 3, 40, 0, 2147483647));
}

TEST(TokenFile, ABadIdIsNamedByItsIndex) {
  for (const char* bad : {"x3", "-1", "1.5", "2147483648", "0x10", "+4", "1,2", "\xff"}) {
    const auto ids = read_token_file(file_with(std::string("7 8 ") + bad + " 9"));
    ASSERT_FALSE(ids.ok()) << bad;
    EXPECT_THAT(ids.error().message(), HasSubstr("/tokens: token 2: bad id"));
  }
}

TEST(TokenFile, NoIdsAndNoFileAreErrors) {
  EXPECT_FALSE(read_token_file(file_with(" \n")).ok());
  EXPECT_FALSE(read_token_file(test::TemporaryDirectory() / "absent").ok());
}

TEST(SamplingOptions, WhatIsGivenReplacesTheModelsOwn) {
  CLI::App app;
  SamplingOptions options;
  add_sampling_options(app, options);
  app.parse("--temperature 0.25 --presence-penalty -1.5 --top-k 0 --seed 18446744073709551615");
  const auto params = resolve(options, {.temperature = 0.7f, .top_k = 30, .top_p = 0.8f});
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params->temperature, 0.25f);
  EXPECT_EQ(params->presence_penalty, -1.5f);
  EXPECT_EQ(params->top_k, 0);
  EXPECT_EQ(params->top_p, 0.8f);
  EXPECT_EQ(params->seed, 18446744073709551615u);
}

TEST(SamplingOptions, ASeedIsDrawnWhereNoneIsGiven) { EXPECT_NE(resolve({}, {})->seed, resolve({}, {})->seed); }

TEST(SamplingOptions, OutOfRangeIsAnError) {
  SamplingOptions options;
  options.top_p = 1.5f;
  EXPECT_THAT(resolve(options, {}).error().message(), HasSubstr("top_p: out of range"));
}

}  // namespace
}  // namespace lily::cli
