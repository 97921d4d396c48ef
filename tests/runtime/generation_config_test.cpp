#include "runtime/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace lily {
namespace {

using testing::HasSubstr;

TEST(GenerationConfig, ReadsThePublishedFile) {
  const auto params = parse_generation_config(
      R"({"bos_token_id": 248044, "do_sample": true, "eos_token_id": [248046, 248044], "pad_token_id": 248044,
          "temperature": 0.6, "top_k": 30, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1,
          "presence_penalty": 1.5, "frequency_penalty": 0.5, "transformers_version": "4.57.1"})",
      "generation_config.json");
  ASSERT_TRUE(params.ok()) << params.error().message();
  EXPECT_FLOAT_EQ(params->temperature, 0.6f);
  EXPECT_EQ(params->top_k, 30);
  EXPECT_FLOAT_EQ(params->top_p, 0.9f);
  EXPECT_FLOAT_EQ(params->min_p, 0.1f);
  EXPECT_FLOAT_EQ(params->repetition_penalty, 1.1f);
  EXPECT_FLOAT_EQ(params->presence_penalty, 1.5f);
  EXPECT_FLOAT_EQ(params->frequency_penalty, 0.5f);
}

TEST(GenerationConfig, LeftOutKeysKeepTheRecommendedValues) {
  const auto params = parse_generation_config(R"({"top_k": null})", "g");
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params->temperature, 1.0f);
  EXPECT_EQ(params->top_k, 20);
  EXPECT_EQ(params->top_p, 0.95f);
  EXPECT_EQ(params->presence_penalty, 0.0f);
}

TEST(GenerationConfig, NoSamplingMeansGreedy) {
  EXPECT_EQ(parse_generation_config(R"({"do_sample": false, "temperature": 0.7})", "g")->temperature, 0);
}

TEST(GenerationConfig, MalformedIsAnErrorThatNamesFileAndKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "g: not valid JSON"},
      {"[1]", "g: wrong JSON: expected an object, got an array"},
      {"{\"top_k\": 20", "g: not valid JSON"},
      {"{\"top_k\": 20, \"top_k\": 3}", "g: duplicate JSON key"},
      {R"({"temperature": "hot"})", "g: temperature: wrong value: expected a number, got \"hot\""},
      {R"({"temperature": -1})", "g: temperature: out of range"},
      {R"({"temperature": 1e300})", "g: temperature: out of range"},
      {R"({"top_k": 2.5})", "g: top_k: wrong value: expected a whole number, got 2.5"},
      {R"({"top_k": -3})", "g: top_k: wrong value: expected a whole number from 0"},
      {R"({"top_k": 18446744073709551615})", "g: top_k: wrong value: expected a whole number from 0"},
      {R"({"top_p": 0})", "g: top_p: out of range"},
      {R"({"do_sample": 1})", "g: do_sample: wrong value: expected true or false, got 1"},
  };
  for (const auto& [text, message] : cases) {
    const auto params = parse_generation_config(text, "g");
    ASSERT_FALSE(params.ok()) << text;
    EXPECT_THAT(params.error().message(), HasSubstr(message));
  }
}

TEST(GenerationConfig, MissingFileGivesTheDefaultsButABadOneIsAnError) {
  const test::TemporaryDirectory directory;
  ASSERT_TRUE(load_generation_config(directory.path()).ok());
  EXPECT_EQ(load_generation_config(directory.path())->top_k, 20);
  std::ofstream(directory / "generation_config.json") << "{";
  EXPECT_FALSE(load_generation_config(directory.path()).ok());
}

}  // namespace
}  // namespace lily
