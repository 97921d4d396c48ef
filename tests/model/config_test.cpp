// Every spelling of a valid config.json gives the same numbers.
#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_model.h"

namespace lily {
namespace {

using nlohmann::json;
using testing::ElementsAre;

json nested() { return json::parse(config_json(test::small_config())); }

ModelConfig parsed(const json& config) {
  auto result = parse_config(config.dump(), "config.json");
  EXPECT_TRUE(result) << (result ? "" : result.error().message());
  return result ? *result : ModelConfig{};
}

TEST(Config, WritesWhatItReads) {
  for (const ModelConfig& c : {test::small_config(), test::small_dense_config(), *named_shape("qwen3.6-35b-a3b")}) {
    const std::string text = config_json(c);
    EXPECT_EQ(config_json(parsed(json::parse(text))), text);
  }
}

TEST(Config, ReadsThePublishedNumbers) {
  const ModelConfig c = parsed(json::parse(config_json(*named_shape("qwen3.6-35b-a3b"))));
  EXPECT_EQ(c.query_size(), 4096);
  EXPECT_EQ(c.conv_channels(), 8192);
  EXPECT_EQ(c.rotary_dim, 64);
  EXPECT_EQ(c.rms_norm_eps, 1e-6f);
  EXPECT_EQ(c.layers[3], LayerKind::full_attention);
  EXPECT_EQ(c.layers[4], LayerKind::linear_attention);
  EXPECT_EQ(c.quantization.of("language_model.model.layers.7.mlp.gate"), (Quantization{8, 64}));
  EXPECT_EQ(c.quantization.of("language_model.lm_head"), (Quantization{4, 64}));
}

TEST(Config, FlatLayoutEqualsNested) {
  json flat = nested();
  flat.update(flat["text_config"]);
  flat.erase("text_config");
  EXPECT_EQ(flat["model_type"], "qwen3_5_moe_text");
  EXPECT_EQ(config_json(parsed(flat)), config_json(parsed(nested())));
}

TEST(Config, IntervalEqualsLayerTypes) {
  json config = nested();
  config["text_config"].erase("layer_types");
  config["text_config"]["full_attention_interval"] = 4;
  EXPECT_EQ(parsed(config).layers, test::small_config().layers);
}

TEST(Config, OlderRopeFieldsEqualRopeParameters) {
  json config = nested();
  json& text = config["text_config"];
  text["rope_theta"] = text["rope_parameters"]["rope_theta"];
  text["partial_rotary_factor"] = text["rope_parameters"]["partial_rotary_factor"];
  text.erase("rope_parameters");
  text["rope_scaling"] = nullptr;
  EXPECT_EQ(config_json(parsed(config)), config_json(parsed(nested())));
  text["rope_scaling"] = {{"type", "default"}};
  EXPECT_EQ(config_json(parsed(config)), config_json(parsed(nested())));
}

TEST(Config, EndTokensOfBothLevelsAreUnited) {
  json config = nested();
  config["eos_token_id"] = {7, 8};
  config["text_config"]["eos_token_id"] = 9;
  EXPECT_THAT(parsed(config).eos_token_ids, ElementsAre(7, 8, 9));
  config["text_config"]["eos_token_id"] = 7;
  EXPECT_THAT(parsed(config).eos_token_ids, ElementsAre(7, 8));
}

TEST(Config, OverridesAreFoundUnderAnyPrefix) {
  json config = nested();
  config["quantization"] = {{"bits", 4},
                            {"group_size", 32},
                            {"language_model.model.layers.0.mlp.gate", {{"bits", 8}, {"group_size", 64}}},
                            {"model.layers.1.mlp.gate", {{"bits", 6}, {"group_size", 32}, {"mode", "affine"}}},
                            {"model.language_model.layers.2.mlp.gate", false},
                            {"lm_head", {{"bits", 5}, {"group_size", 128}}},
                            {"vision_tower.blocks.0", {{"mode", "mxfp4"}}}};
  const QuantizationConfig q = parsed(config).quantization;
  for (const std::string prefix : {"language_model.model.", "model.", "model.language_model."}) {
    EXPECT_EQ(q.of(prefix + "layers.0.mlp.gate"), (Quantization{8, 64}));
    EXPECT_EQ(q.of(prefix + "layers.1.mlp.gate"), (Quantization{6, 32}));
    EXPECT_EQ(q.of(prefix + "layers.2.mlp.gate"), (Quantization{}));
    EXPECT_EQ(q.of(prefix + "layers.3.mlp.gate"), (Quantization{4, 32}));
  }
  EXPECT_EQ(q.of("language_model.lm_head"), (Quantization{5, 128}));
}

TEST(Config, QuantizationConfigAloneIsEnough) {
  json config = nested();
  config["quantization_config"] = config["quantization"];
  config.erase("quantization");
  EXPECT_EQ(parsed(config).quantization.fallback, (Quantization{4, 32}));
}

TEST(Config, TiedHeadIsReadFromEitherLevel) {
  json config = nested();
  config["text_config"].erase("tie_word_embeddings");
  config["tie_word_embeddings"] = true;
  EXPECT_TRUE(parsed(config).tie_word_embeddings);
  config["text_config"]["tie_word_embeddings"] = false;
  EXPECT_FALSE(parsed(config).tie_word_embeddings);
}

}  // namespace
}  // namespace lily
