// inspect, synth and quantize as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/run_lily.h"
#include "support/test_model.h"

namespace lily {
namespace {

using test::run_lily;
using test::TemporaryDirectory;
using testing::HasSubstr;

TEST(Inspect, KnowsThePublishedShape) {
  const auto run = run_lily("inspect --shape qwen3.6-35b-a3b");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("30 linear attention, 10 full attention"));
  EXPECT_THAT(run.out, HasSubstr("20480 bytes x N"));
  EXPECT_EQ(run.err, "");
}

TEST(Inspect, JsonHasTheCosts) {
  const auto run = run_lily("inspect --json --shape qwen3.6-35b-a3b");
  ASSERT_EQ(run.exit_code, 0);
  const auto object = nlohmann::json::parse(run.out);
  EXPECT_EQ(object["total"]["bytes"], 19'508'787'456);
  EXPECT_EQ(object["per_token"]["kv_bytes_per_position"], 20480);
  EXPECT_EQ(object["config"]["experts_per_token"], 8);
}

TEST(Inspect, CountsWhatItSkips) {
  const TemporaryDirectory directory;
  test::TestModel model;
  model.tensors.emplace("mtp.x", test::TestTensor{DType::bf16, {4}, std::vector<std::byte>(8)});
  model.write(directory.path());
  const auto run = run_lily("inspect " + directory.path() + " --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["skipped"]["mtp"]["bytes"], 8);
}

TEST(Inspect, WarnsOfNormsFoldedTwice) {
  const TemporaryDirectory directory;
  test::TestModel model;
  for (int i = 0; i < 4; ++i) {
    for (uint16_t& w : model.layer_tensor(i, "input_layernorm.weight").as<uint16_t>()) w = 0x4000;  // 2
  }
  model.write(directory.path());
  const auto run = run_lily("inspect " + directory.path());
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("the mean of the layer norms is 2.00"));
}

TEST(Inspect, WantsOneThing) {
  EXPECT_EQ(run_lily("inspect").exit_code, 2);
  EXPECT_EQ(run_lily("inspect --shape nothing").err,
            "lily: shape: no such shape: expected qwen3.6-35b-a3b or tiny, got nothing\n");
}

TEST(Synth, MakesAModelThatOpens) {
  const TemporaryDirectory directory;
  const std::string out = directory / "model";
  const auto run = run_lily("synth --shape tiny --layers 4 --bits 6 --group 32 --seed 5 --out " + out);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run_lily("inspect " + out).exit_code, 0);
  EXPECT_EQ(run_lily("synth --shape tiny --out " + out).err,
            "lily: " + out + ": not empty: expected a new or empty directory\n");
}

TEST(Synth, RefusesBitsThatDoNotExist) {
  const TemporaryDirectory directory;
  EXPECT_EQ(run_lily("synth --bits 7 --out " + directory.path()).exit_code, 2);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Quantize, ConvertsAndSaysWhatItLeftOut) {
  const TemporaryDirectory directory;
  ModelConfig config = test::small_config();
  config.quantization = {};
  test::TestModel raw = test::to_raw(test::TestModel(config));
  raw.tensors.emplace("mtp.x", test::TestTensor{DType::bf16, {4}, std::vector<std::byte>(8)});
  std::filesystem::create_directory(directory / "raw");
  raw.write(directory / "raw");
  const auto run = run_lily("quantize " + (directory / "raw") + " " + (directory / "mlx") + " --group 32 --bits 8");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("left out: 1 mtp tensors"));
  EXPECT_EQ(run_lily("inspect " + (directory / "mlx")).exit_code, 0);
  EXPECT_EQ(run_lily("quantize " + (directory / "raw") + " " + (directory / "mlx")).exit_code, 2);
}

}  // namespace
}  // namespace lily
