#include "runtime/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lily {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(GenerationConfig, ReadsThePublishedFile) {
  const auto config = parse_generation_config(
      R"({"bos_token_id": 248044, "do_sample": true, "eos_token_id": [248046, 248044], "pad_token_id": 248044,
          "temperature": 0.6, "top_k": 30, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.1,
          "presence_penalty": 1.5, "frequency_penalty": 0.5, "transformers_version": "4.57.1"})",
      "generation_config.json");
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_THAT(config->eos_token_ids, ElementsAre(248046, 248044));
  const SamplingParams& sampling = config->sampling;
  EXPECT_FLOAT_EQ(sampling.temperature, 0.6f);
  EXPECT_EQ(sampling.top_k, 30);
  EXPECT_FLOAT_EQ(sampling.top_p, 0.9f);
  EXPECT_FLOAT_EQ(sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(sampling.repetition_penalty, 1.1f);
  EXPECT_FLOAT_EQ(sampling.presence_penalty, 1.5f);
  EXPECT_FLOAT_EQ(sampling.frequency_penalty, 0.5f);
}

TEST(GenerationConfig, LeftOutKeysKeepTheRecommendedValues) {
  const auto config = parse_generation_config(R"({"eos_token_id": 7, "top_k": null})", "g");
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->eos_token_ids, ElementsAre(7));
  EXPECT_EQ(config->sampling.temperature, 1.0f);
  EXPECT_EQ(config->sampling.top_k, 20);
  EXPECT_EQ(config->sampling.top_p, 0.95f);
  EXPECT_EQ(config->sampling.presence_penalty, 0.0f);
}

TEST(GenerationConfig, NoSamplingMeansGreedy) {
  EXPECT_EQ(parse_generation_config(R"({"do_sample": false, "temperature": 0.7})", "g")->sampling.temperature, 0);
}

TEST(GenerationConfig, MalformedIsAnErrorThatNamesFileAndKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "g: not a JSON object"},
      {"[1]", "g: not a JSON object"},
      {"{\"top_k\": 20", "g: not a JSON object"},
      {R"({"temperature": "hot"})", "g: temperature: expected a number, got \"hot\""},
      {R"({"temperature": -1})", "g: temperature: out of range"},
      {R"({"top_k": 2.5})", "g: top_k: expected a whole number"},
      {R"({"top_k": -3})", "g: top_k: expected a whole number"},
      {R"({"top_k": 99999999999999999999})", "g: top_k: expected a whole number"},
      {R"({"top_p": 0})", "g: top_p: out of range"},
      {R"({"do_sample": 1})", "g: do_sample: expected true or false"},
      {R"({"eos_token_id": [1, -2]})", "g: eos_token_id: expected a whole number"},
      {R"({"eos_token_id": "x"})", "g: eos_token_id: expected a whole number"},
  };
  for (const auto& [text, message] : cases) {
    const auto config = parse_generation_config(text, "g");
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_THAT(config.error().message(), HasSubstr(message));
  }
}

TEST(GenerationConfig, MissingFileGivesTheDefaultsButABadOneIsAnError) {
  const std::string directory = testing::TempDir() + "generation_config_test";
  std::filesystem::create_directories(directory);
  std::filesystem::remove(directory + "/generation_config.json");
  ASSERT_TRUE(load_generation_config(directory).ok());
  EXPECT_EQ(load_generation_config(directory)->sampling.top_k, 20);
  std::ofstream(directory + "/generation_config.json") << "{";
  EXPECT_FALSE(load_generation_config(directory).ok());
}

// TK-08: config.json names one end token, generation_config.json both.
TEST(GenerationConfig, EndTokensAreUnited) { EXPECT_THAT(unite({3}, {5, 3}), ElementsAre(3, 5)); }

}  // namespace
}  // namespace lily
