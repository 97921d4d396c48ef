// The published model's bytes and operations, against figures that were worked out by hand.
#include "model/accounting.h"

#include <gtest/gtest.h>

#include "model/shapes.h"
#include "support/test_model.h"

namespace lily {
namespace {

struct RealModel {
  ModelConfig config = *named_shape("qwen3.6-35b-a3b");
  std::vector<TensorSpec> tensors = published_tensors(config);
  PartSizes sizes = sizes_by_part(tensors, config);
  TokenCost cost = token_cost(sizes, config);
};

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

// Byte for byte what mlx-community publishes without its vision tower: 20,401,929,952 - 893,142,496.
TEST(Accounting, PublishedCheckpointHasItsExactSize) {
  const RealModel real;
  int64_t bytes = 0, parameters = 0;
  for (const TensorSpec& tensor : real.tensors) bytes += tensor.bytes();
  for (const auto& [part, size] : real.sizes) parameters += size.parameters;
  EXPECT_EQ(bytes, 19'508'787'456);
  EXPECT_EQ(real.tensors.size(), 1757u);
  EXPECT_EQ(parameters, 34'660'610'688);
  EXPECT_EQ(real.sizes.at(TensorPart::experts).bytes, 18'119'393'280);
}

TEST(Accounting, WeightsReadForOneToken) {
  const RealModel real;
  const auto& bytes = real.cost.weight_bytes;
  EXPECT_NEAR(megabytes(bytes.at(TensorPart::experts)), 566.2, 0.05);
  EXPECT_NEAR(megabytes(bytes.at(TensorPart::head)), 286.1, 0.05);
  EXPECT_NEAR(megabytes(bytes.at(TensorPart::attention)), 153.4, 0.05);
  EXPECT_NEAR(megabytes(bytes.at(TensorPart::shared_expert)), 70.8, 0.05);
  EXPECT_NEAR(megabytes(bytes.at(TensorPart::router)), 22.4, 0.05);
  // The matrices alone are 568.4 MB; here the convolution, A_log and dt_bias count as well: 30 x (8192 x 4 + 2 x 32) bf16.
  const int64_t small = 30 * (8192 * 4 + 2 * 32) * 2;
  EXPECT_NEAR(megabytes(bytes.at(TensorPart::linear_attention) - small), 568.4, 0.1);
  // 1667 MB of matrices; on top of them the norms and one row of the embedding.
  const int64_t norms = real.sizes.at(TensorPart::norm).bytes, row = bytes.at(TensorPart::embedding);
  EXPECT_EQ(row, 2048 * 9 / 16);
  EXPECT_NEAR(megabytes(real.cost.weight_bytes_total - small - norms - row), 1667, 0.5);
}

TEST(Accounting, StateAndCacheOfOneToken) {
  const RealModel real;
  const int64_t recurrent = 62'914'560, convolution = 30 * 3 * 8192 * 4;
  EXPECT_EQ(real.cost.state_bytes, 2 * (recurrent + convolution));
  EXPECT_NEAR(megabytes(2 * recurrent), 125.8, 0.05);
  EXPECT_EQ(real.cost.kv_bytes_per_position, 20'480);
  EXPECT_NEAR(megabytes(real.cost.bytes_at(0)), 1801, 1);
  EXPECT_NEAR(megabytes(real.cost.bytes_at(131072) - real.cost.bytes_at(0)), 2684, 0.5);
}

TEST(Accounting, OperationsOfOneToken) {
  const RealModel real;
  // Matrices without the head: 4.87 GFLOP.
  EXPECT_NEAR(megabytes(real.cost.matrix_flops - real.cost.head_flops), 4870, 10);
  EXPECT_EQ(real.cost.head_flops, 2 * int64_t{248320} * 2048);
  // Scores and values of 16 heads of 256 in 10 layers; a prompt's mean context is half its length, hence 81,920 a token.
  EXPECT_EQ(real.cost.attention_flops_per_position, 2 * 81'920);
  // 7 a state element (decay 1, S k 2, update 2, S q 2): 0.11 GFLOP. Estimates of 0.17 count 11, as chunked forms need.
  EXPECT_EQ(real.cost.delta_flops, 30 * 7 * 32 * 128 * 128);
  EXPECT_EQ(real.cost.flops_at(1000) - real.cost.flops_at(0), 163'840'000);
}

TEST(Accounting, OperationsOfAPrompt) {
  const RealModel real;
  // Of one token: the decode step that attends to itself alone.
  EXPECT_EQ(real.cost.prompt_flops(1), real.cost.flops_at(1));
  // Step by step, with the head for the last token only.
  int64_t steps = 0;
  for (int64_t context = 1; context <= 1000; ++context) steps += real.cost.flops_at(context);
  EXPECT_EQ(real.cost.prompt_flops(1000), steps - 999 * real.cost.head_flops);
  // 4096 tokens: 4.87 G of matrices, 0.11 G of recurrence, 81,920 x 4097 of attention, a 4096th of the head.
  EXPECT_NEAR(static_cast<double>(real.cost.prompt_flops(4096)) / 4096e9, 5.32, 0.01);
}

TEST(Accounting, TiedHeadReadsTheEmbedding) {
  ModelConfig config = test::small_dense_config();
  const TokenCost separate = token_cost(sizes_by_part(published_tensors(config), config), config);
  config.tie_word_embeddings = true;
  const TokenCost tied = token_cost(sizes_by_part(published_tensors(config), config), config);
  EXPECT_EQ(tied.weight_bytes_total, separate.weight_bytes_total);
  EXPECT_EQ(tied.matrix_flops, separate.matrix_flops);
}

TEST(Accounting, UnquantizedParametersAreTwoBytes) {
  ModelConfig config = test::small_config();
  config.quantization = {};
  for (const auto& [part, size] : sizes_by_part(published_tensors(config), config)) {
    EXPECT_EQ(size.bytes, 2 * size.parameters) << name_of(part);
    EXPECT_EQ(size.bits_per_parameter(), 16);
  }
}

}  // namespace
}  // namespace lily
