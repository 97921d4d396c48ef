// Valid checkpoints of every published form bind, and to the same weights.
#include "model/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/fingerprint.h"
#include "model/weights.h"
#include "support/bound_model.h"
#include "support/oracle.h"
#include "support/temporary_directory.h"
#include "support/test_model.h"

namespace lily {
namespace {

using test::BoundModel;
using test::open_and_bind;
using test::TemporaryDirectory;
using test::TestModel;
using testing::ElementsAre;

BoundModel open_and_bind(const TestModel& model, const TemporaryDirectory& directory) {
  model.write(directory.path());
  return test::open_and_bind(directory.path());
}

std::vector<float> values(const WeightMatrix& matrix) {
  std::vector<float> all(matrix.rows * matrix.cols);
  for (int64_t r = 0; r < matrix.rows; ++r) matrix.dequantize_row(r, &all[r * matrix.cols]);
  return all;
}

void expect_equal(const ModelWeights& a, const ModelWeights& b) {
  EXPECT_EQ(values(a.embed), values(b.embed));
  EXPECT_EQ(values(a.head), values(b.head));
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].kind, b.layers[i].kind);
    EXPECT_EQ(a.layers[i].linear.conv, b.layers[i].linear.conv);
    EXPECT_EQ(a.layers[i].linear.norm, b.layers[i].linear.norm);
    EXPECT_EQ(a.layers[i].linear.a_log, b.layers[i].linear.a_log);
    EXPECT_EQ(values(a.layers[i].moe.router), values(b.layers[i].moe.router));
    for (const auto experts : {&MoeWeights::gate, &MoeWeights::up, &MoeWeights::down}) {
      for (int e = 0; e < 4; ++e)
        EXPECT_EQ(values((a.layers[i].moe.*experts)[e]), values((b.layers[i].moe.*experts)[e]));
    }
  }
}

ModelConfig unquantized(ModelConfig config) {
  config.quantization = {};
  return config;
}

TEST(Checkpoint, BindsMoe) {
  const TemporaryDirectory directory;
  const BoundModel bound = open_and_bind(TestModel(), directory);
  ASSERT_EQ(bound.weights.layers.size(), 4u);
  EXPECT_EQ(bound.weights.layers[3].kind, LayerKind::full_attention);
  EXPECT_EQ(bound.weights.layers[3].full.q.rows, 128);
  EXPECT_EQ(bound.weights.layers[0].linear.qkv.rows, 128);
  EXPECT_EQ(bound.weights.layers[0].moe.router.bits, 8);
  EXPECT_EQ(bound.weights.layers[0].moe.gate[3].rows, 32);
  EXPECT_NE(bound.weights.head.data, bound.weights.embed.data);
}

TEST(Checkpoint, BindsDenseAndTied) {
  const TemporaryDirectory directory;
  ModelConfig config = test::small_dense_config();
  config.tie_word_embeddings = true;
  const BoundModel bound = open_and_bind(TestModel(config), directory);
  EXPECT_EQ(bound.weights.layers.at(0).mlp.down.cols, 96);
  EXPECT_EQ(bound.weights.head.data, bound.weights.embed.data);
}

TEST(Checkpoint, TiedModelMayCarryAHeadButUsesTheEmbedding) {
  const TemporaryDirectory directory;
  TestModel model;
  model.text_config()["tie_word_embeddings"] = true;
  const BoundModel bound = open_and_bind(model, directory);
  EXPECT_EQ(bound.weights.head.data, bound.weights.embed.data);
}

TEST(Checkpoint, ShardsEqualOneFile) {
  const TemporaryDirectory one, sharded;
  const TestModel model;
  model.write_sharded(sharded.path());
  expect_equal(open_and_bind(model, one).weights, open_and_bind(sharded.path()).weights);
}

TEST(Checkpoint, TextOnlyNamesEqualNestedOnes) {
  const TemporaryDirectory nested, text_only;
  TestModel model;
  const BoundModel a = open_and_bind(model, nested);
  model.rename_prefix("language_model.model.", "model.");
  model.rename_prefix("language_model.lm_head.", "lm_head.");
  expect_equal(a.weights, open_and_bind(model, text_only).weights);
}

TEST(Checkpoint, HuggingFaceFormEqualsUnquantizedMlx) {
  const TemporaryDirectory mlx, raw;
  const TestModel model(unquantized(test::small_config()));
  const BoundModel a = open_and_bind(model, mlx), b = open_and_bind(test::to_raw(model), raw);
  expect_equal(a.weights, b.weights);
  EXPECT_EQ(b.weights.layers[0].moe.up.stride, 64);
  EXPECT_EQ(b.weights.layers[0].moe.up.offset, 32);
  // The folded file holds bf16(1 + w); here w itself was rounded, and the sum is float32.
  const std::vector<float>&folded = a.weights.layers[3].full.q_norm, &summed = b.weights.layers[3].full.q_norm;
  for (size_t i = 0; i < folded.size(); ++i) EXPECT_NEAR(folded[i], summed[i], 0x1p-9);
}

TEST(Checkpoint, RawNormsGetOneAddedInFloat32) {
  const TemporaryDirectory directory;
  TestModel raw = test::to_raw(TestModel(unquantized(test::small_config())));
  raw.tensors.at("model.language_model.norm.weight").as<uint16_t>()[0] = float_to_bf16(0x1p-12f);
  EXPECT_EQ(open_and_bind(raw, directory).weights.final_norm[0], 1 + 0x1p-12f);
}

TEST(Checkpoint, FoldedNormsAreUsedAsStored) {
  const TemporaryDirectory directory;
  TestModel model;
  model.tensors.at("language_model.model.norm.weight").as<uint16_t>()[0] = float_to_bf16(0.01f);
  EXPECT_EQ(open_and_bind(model, directory).weights.final_norm[0], bf16_to_float(float_to_bf16(0.01f)));
}

TEST(Checkpoint, AcceptsFloat32AndFloat16) {
  const TemporaryDirectory directory;
  TestModel model(unquantized(test::small_config()));
  test::TestTensor& head = model.tensors.at("language_model.lm_head.weight");
  head.dtype = DType::f32;
  head.data.resize(2 * head.data.size());
  for (float& w : head.as<float>()) w = 0.125f;
  model.layer_tensor(0, "linear_attn.A_log").dtype = DType::f16;
  model.layer_tensor(0, "linear_attn.A_log").as<uint16_t>()[0] = 0x3c00;
  const BoundModel bound = open_and_bind(model, directory);
  EXPECT_EQ(bound.weights.head.dtype, DType::f32);
  EXPECT_EQ(values(bound.weights.head)[5], 0.125f);
  EXPECT_EQ(bound.weights.layers[0].linear.a_log[0], 1.0f);
}

TEST(Checkpoint, VisionAndMtpAreSkipped) {
  const TemporaryDirectory directory;
  TestModel model;
  for (const char* name : {"vision_tower.blocks.0.weight", "model.visual.patch_embed.proj.bias", "visual.x",
                           "mtp.fc.weight", "language_model.mtp.norm.weight"}) {
    model.tensors.emplace(name, test::TestTensor{DType::bf16, {2}, std::vector<std::byte>(4, std::byte{0xff})});
  }
  EXPECT_EQ(open_and_bind(model, directory).weights.layers.size(), 4u);
}

TEST(Checkpoint, UnquantizedModuleNeedsNoOverride) {
  const TemporaryDirectory directory;
  TestModel model;
  const std::string module = "linear_attn.in_proj_a";
  model.tensors.erase("language_model.model.layers.0." + module + ".scales");
  model.tensors.erase("language_model.model.layers.0." + module + ".biases");
  model.layer_tensor(0, module + ".weight") = {DType::bf16, {2, 64}, std::vector<std::byte>(256)};
  EXPECT_EQ(open_and_bind(model, directory).weights.layers.at(0).linear.a.dtype, DType::bf16);
  model.config["quantization"]["language_model.model.layers.0." + module] = false;
  const TemporaryDirectory with_override;
  EXPECT_EQ(open_and_bind(model, with_override).weights.layers.at(0).linear.a.dtype, DType::bf16);
}

// A layer of 6 bits among those of 4, routers of 8; the overrides' paths in either spelling.
TEST(Checkpoint, LD_05_BitsOfEachModuleInBothSpellings) {
  ModelConfig config = test::small_config();
  const std::string module = "model.layers.1.linear_attn.out_proj";
  config.quantization.overrides[module] = {.bits = 6, .group_size = 32};
  TestModel model(config);
  for (const char* prefix : {"language_model.model.", "model.", "model.language_model."}) {
    nlohmann::json& overrides = model.config["quantization"];
    nlohmann::json spelled;
    for (const auto& [key, value] : overrides.items()) {
      const size_t at = key.find("layers.");
      spelled[at == key.npos ? key : prefix + key.substr(at)] = value;
    }
    overrides = spelled;
    const TemporaryDirectory directory;
    const BoundModel bound = open_and_bind(model, directory);
    ASSERT_EQ(bound.weights.layers.size(), 4u) << prefix;
    EXPECT_EQ(bound.weights.layers[1].linear.out.bits, 6) << prefix;
    EXPECT_EQ(bound.weights.layers[0].linear.out.bits, 4) << prefix;
    EXPECT_EQ(bound.weights.layers[0].moe.router.bits, 8) << prefix;
  }
}

TEST(Checkpoint, EndTokensOfGenerationConfigAreAdded) {
  const TemporaryDirectory directory;
  TestModel model;
  model.config["eos_token_id"] = 5;
  test::write_text(directory / "generation_config.json", R"({"eos_token_id": [6, 5], "temperature": 1.0})");
  EXPECT_THAT(open_and_bind(model, directory).checkpoint->config().eos_token_ids, ElementsAre(5, 6));
}

// MLX does not pad the header, so that data begin at any byte.
TEST(Checkpoint, DataMayBeUnaligned) {
  const TemporaryDirectory aligned, shifted;
  const TestModel model;
  const BoundModel a = open_and_bind(model, aligned);
  model.write(shifted.path());
  std::string file = test::read_text(shifted / "model.safetensors");
  const auto length = load_unaligned<uint64_t>(file.data()) + 1;
  std::memcpy(file.data(), &length, 8);
  file.insert(8 + length - 1, " ");
  test::write_text(shifted / "model.safetensors", file);
  expect_equal(a.weights, open_and_bind(shifted.path()).weights);
}

class OracleCheckpoint : public testing::TestWithParam<const char*> {};

TEST_P(OracleCheckpoint, Binds) {
  LILY_NEED_ORACLE(GetParam());
  const BoundModel bound = open_and_bind(test::open_oracle(GetParam()).directory);
  EXPECT_EQ(bound.weights.layers.size(), bound.checkpoint->config().layers.size());
}

INSTANTIATE_TEST_SUITE_P(All, OracleCheckpoint, testing::Values("a", "b", "f", "g"));

TEST(Fingerprint, TellsModelsApart) {
  const auto of = [](const TestModel& model) {
    const TemporaryDirectory directory;
    model.write(directory.path());
    return fingerprint(Checkpoint::open(directory.path()).value());
  };
  const std::string one = of(TestModel());
  EXPECT_EQ(one.size(), 16u);
  EXPECT_EQ(of(TestModel()), one);
  EXPECT_NE(of(TestModel(test::small_config(), 2)), one);
  TestModel renamed;
  renamed.rename_prefix("language_model.", "");
  EXPECT_NE(of(renamed), one);
}

}  // namespace
}  // namespace lily
