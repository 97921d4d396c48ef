// Random checkpoints open, repeat, and have weights of a sensible size.
#include "model/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/reference.h"
#include "model/weights.h"
#include "support/temporary_directory.h"
#include "support/test_model.h"

namespace lily {
namespace {

using test::TemporaryDirectory;

TEST(Synthetic, OpensAtEveryWidth) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (ModelConfig config : {test::small_config(), test::small_dense_config()}) {
      config.quantization = mixed_quantization(config, {.bits = bits, .group_size = 32}, 8);
      const TemporaryDirectory directory;
      const Result<void> written = write_synthetic(directory.path(), config, 1);
      ASSERT_TRUE(written) << written.error().message();
      const auto checkpoint = Checkpoint::open(directory.path());
      ASSERT_TRUE(checkpoint) << checkpoint.error().message();
      const auto weights = bind_weights(*checkpoint);
      ASSERT_TRUE(weights) << weights.error().message();
      EXPECT_EQ(weights->embed.bits, bits);
    }
  }
}

TEST(Synthetic, SameSeedSameBytes) {
  const TemporaryDirectory a, b, c;
  ASSERT_TRUE(write_synthetic(a.path(), test::small_config(), 1));
  ASSERT_TRUE(write_synthetic(b.path(), test::small_config(), 1));
  ASSERT_TRUE(write_synthetic(c.path(), test::small_config(), 2));
  EXPECT_EQ(test::read_text(a / "model.safetensors"), test::read_text(b / "model.safetensors"));
  EXPECT_NE(test::read_text(a / "model.safetensors"), test::read_text(c / "model.safetensors"));
}

TEST(Synthetic, PiecesEqualTheWhole) {
  const ModelConfig config = test::small_config();
  for (const TensorSpec& tensor : published_tensors(config)) {
    const auto size = static_cast<size_t>(tensor.bytes());
    std::vector<std::byte> whole(size), pieces(size);
    fill_synthetic(tensor, config, 3, 0, whole);
    const size_t cut = size / 8 * 4;
    fill_synthetic(tensor, config, 3, 0, std::span(pieces).first(cut));
    fill_synthetic(tensor, config, 3, static_cast<int64_t>(cut), std::span(pieces).subspan(cut));
    EXPECT_EQ(whole, pieces) << tensor.name;
  }
}

// A projection keeps the size of its input: deviation 1 / sqrt(cols). Group scales vary by a quarter, which adds 1 %.
TEST(Synthetic, WeightsKeepTheSizeOfTheirInput) {
  const TemporaryDirectory directory;
  ModelConfig config = test::small_config();
  config.vocab_size = 4096;
  ASSERT_TRUE(write_synthetic(directory.path(), config, 1));
  const auto checkpoint = Checkpoint::open(directory.path());
  const auto weights = bind_weights(*checkpoint);
  std::vector<float> row(64);
  double sum = 0, squares = 0;
  for (int64_t r = 0; r < 4096; ++r) {
    weights->embed.dequantize_row(r, row.data());
    for (const float w : row) sum += w, squares += double{w} * w;
  }
  const double count = 4096 * 64;
  EXPECT_NEAR(sum / count, 0, 1e-3);
  EXPECT_NEAR(std::sqrt(squares / count) * 8, 1, 0.02);
}

TEST(Synthetic, DecaysAreThoseOfTrainedModels) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_synthetic(directory.path(), test::small_config(), 1));
  const auto checkpoint = Checkpoint::open(directory.path());
  const auto weights = bind_weights(*checkpoint);
  for (const LayerWeights& layer : weights->layers) {
    for (const float w : layer.input_norm) EXPECT_NEAR(w, 1, 0.11);
    for (size_t h = 0; h < layer.linear.a_log.size(); ++h) {
      const double decay = std::exp(-std::exp(layer.linear.a_log[h]) * std::log1p(std::exp(layer.linear.dt_bias[h])));
      EXPECT_GT(decay, 0.15);  // exp(-16 * 0.1) at the fastest
      EXPECT_LT(decay, 1);
    }
  }
}

// Through the whole model: finite, and logits neither flat nor one-hot.
TEST(Synthetic, LogitsHaveSpread) {
  const TemporaryDirectory directory;
  ModelConfig config = test::small_config();
  config.layers = layer_pattern(12);
  config.quantization = mixed_quantization(config, {.bits = 4, .group_size = 32}, 8);
  ASSERT_TRUE(write_synthetic(directory.path(), config, 1));
  const auto checkpoint = Checkpoint::open(directory.path());
  const auto weights = bind_weights(*checkpoint);
  ReferenceState state(config);
  const std::vector<int32_t> tokens = {1, 2, 3, 5, 8, 13, 21, 34};
  const auto hidden = reference_forward(config, *weights, state, tokens);
  const auto logits = reference_logits(*weights, hidden);
  double squares = 0;
  for (const float value : logits) squares += double{value} * value;
  const double deviation = std::sqrt(squares / static_cast<double>(logits.size()));
  EXPECT_GT(deviation, 1);
  EXPECT_LT(deviation, 10);
}

TEST(Synthetic, ShardsAreCutAndIndexed) {
  const TemporaryDirectory directory;
  const ModelConfig config = test::small_config();
  const std::vector<TensorSpec> tensors = published_tensors(config);
  auto writer = CheckpointWriter::create(directory.path(), tensors, 30'000);
  ASSERT_TRUE(writer) << writer.error().message();
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<std::byte> data(tensors[i].bytes());
    fill_synthetic(tensors[i], config, 1, 0, data);
    ASSERT_TRUE(writer->write(i, 0, data));
  }
  ASSERT_TRUE(writer->finish());
  test::write_text(directory / "config.json", config_json(config));
  EXPECT_TRUE(std::filesystem::exists(directory / "model-00001-of-00005.safetensors"));
  const auto checkpoint = Checkpoint::open(directory.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  EXPECT_TRUE(bind_weights(*checkpoint));
}

// What the writer makes is aligned: every tensor at a multiple of its element size.
TEST(Synthetic, FilesAreAligned) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_synthetic(directory.path(), test::small_config(), 1));
  const auto checkpoint = Checkpoint::open(directory.path());
  for (const auto& [name, tensor] : checkpoint->tensors()) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data) % size_of(tensor.dtype), 0u) << name;
  }
}

TEST(Synthetic, TooLittleSpaceIsAnErrorBeforeTheFirstByte) {
  const TemporaryDirectory directory;
  const std::vector<TensorSpec> huge = {{"x", DType::u8, {int64_t{1} << 60}}};
  const auto writer = CheckpointWriter::create(directory.path(), huge);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().what, "not enough free space");
  EXPECT_EQ(writer.error().expected, "1152921504.61 GB");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace lily
