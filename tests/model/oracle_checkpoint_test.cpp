// The oracles' checkpoints bind: MLX 4-bit MoE (a, b), dense and tied (f), raw bf16 (g).
#include <gtest/gtest.h>

#include <filesystem>

#include "model/weights.h"

namespace lily {
namespace {

// Unpacked by hand: tar -xf shared/oracle/<name>.tar -C <folder>.
std::string oracle(const std::string& name) { return "/tmp/orc/" + name; }

class OracleCheckpoint : public testing::TestWithParam<const char*> {};

TEST_P(OracleCheckpoint, Binds) {
  const std::string directory = oracle(GetParam());
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "no oracle at " << directory;
  const auto checkpoint = Checkpoint::open(directory);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const auto weights = bind_weights(*checkpoint);
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_EQ(weights->layers.size(), checkpoint->config().layers.size());
  EXPECT_EQ(weights->head.data == weights->embed.data, checkpoint->config().tie_word_embeddings);
}

INSTANTIATE_TEST_SUITE_P(All, OracleCheckpoint, testing::Values("a", "b", "f", "g"));

}  // namespace
}  // namespace lily
