// The CPU backend against the reference on random checkpoints of many shapes and quantisations.
//
// Tolerance as in oracle_test. Random routers have near-ties that flip an expert between two orders of summation; the
// seeds here have none.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "support/compare.h"
#include "support/temporary_directory.h"
#include "support/test_model.h"

namespace lily {
namespace {

struct ShapeCase {
  const char* name;
  std::function<void(ModelConfig&)> change;
};

void PrintTo(const ShapeCase& shape, std::ostream* out) { *out << shape.name; }

void quantize_all(ModelConfig& c, int bits, int group) {
  c.quantization = mixed_quantization(c, {.bits = bits, .group_size = group}, 8);
}

ModelConfig base_config() {
  ModelConfig c = test::small_config();
  c.hidden_size = 256;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 64;
  c.rotary_dim = 16;
  c.expert_size = c.shared_expert_size = 128;
  c.num_experts = 8;
  c.vocab_size = 320;
  quantize_all(c, 4, 64);
  return c;
}

const ShapeCase cases[] = {
    {"plain", [](ModelConfig&) {}},
    {"bits2", [](ModelConfig& c) { quantize_all(c, 2, 64); }},
    {"bits3", [](ModelConfig& c) { quantize_all(c, 3, 64); }},
    {"bits5_group32", [](ModelConfig& c) { quantize_all(c, 5, 32); }},
    {"bits6_group128", [](ModelConfig& c) { quantize_all(c, 6, 128); }},
    {"bits8_group128", [](ModelConfig& c) { quantize_all(c, 8, 128); }},
    {"bits4_group32", [](ModelConfig& c) { quantize_all(c, 4, 32); }},
    {"bits4_group128", [](ModelConfig& c) { quantize_all(c, 4, 128); }},
    {"unquantised", [](ModelConfig& c) { quantize_all(c, 0, 0); }},
    {"head6_embedding8",
     [](ModelConfig& c) {
       c.quantization.overrides["lm_head"] = {.bits = 6, .group_size = 64};
       c.quantization.overrides["model.embed_tokens"] = {.bits = 8, .group_size = 64};
     }},
    {"tied", [](ModelConfig& c) { c.tie_word_embeddings = true; }},
    {"experts256",
     [](ModelConfig& c) {
       c.num_experts = 256;
       c.experts_per_token = 8;
       c.layers.resize(2);
       quantize_all(c, 4, 64);
     }},
    {"all_experts_chosen", [](ModelConfig& c) { c.experts_per_token = 8; }},
    {"odd_heads",
     [](ModelConfig& c) {
       c.num_heads = 9;
       c.num_kv_heads = 3;
       c.linear_key_heads = 3;
       c.linear_value_heads = 9;
       c.layers = {LayerKind::full_attention, LayerKind::linear_attention, LayerKind::full_attention};
       quantize_all(c, 4, 64);
     }},
    {"one_kv_head_for_70",
     [](ModelConfig& c) {
       c.num_heads = 70;
       c.num_kv_heads = 1;
       c.head_dim = 32;
       c.rotary_dim = 8;
     }},
    {"odd_dimensions",  // nothing fills a vector, so nothing is quantised
     [](ModelConfig& c) {
       c.hidden_size = 90;
       c.vocab_size = 101;
       c.head_dim = 22;
       c.rotary_dim = 6;
       c.linear_key_dim = 20;
       c.linear_value_dim = 27;
       c.conv_kernel = 3;
       c.expert_size = 37;
       c.shared_expert_size = 41;
       quantize_all(c, 0, 0);
     }},
    {"dense",
     [](ModelConfig& c) {
       c.model_type = "qwen3_5";
       c.num_experts = c.experts_per_token = c.expert_size = c.shared_expert_size = 0;
       c.mlp_size = 384;
       quantize_all(c, 4, 64);
     }},
    {"all_linear", [](ModelConfig& c) { c.layers.assign(3, LayerKind::linear_attention); }},
};

// bf16 keys and values are off by up to 2^-9, which random weights carry to the logits a few times larger; and a
// near-tie of the router may flip, and then a token and those after it differ by more. So most rows are held to this.
constexpr double fast_tolerance = 2e-2;

void expect_mostly_close(std::span<const float> got, std::span<const float> want, size_t vocab,
                         const std::string& what) {
  size_t close = 0;
  const size_t rows = want.size() / vocab;
  for (size_t i = 0; i < rows; ++i) {
    const test::Difference d = test::difference(got.subspan(i * vocab, vocab), want.subspan(i * vocab, vocab));
    if (d.finite && d.relative <= fast_tolerance) ++close;
  }
  EXPECT_GE(close, rows * 2 / 3) << what;
}

class ShapeTest : public testing::TestWithParam<ShapeCase> {};

std::vector<float> run(Backend& backend, std::span<const int32_t> ids, size_t chunk) {
  const size_t vocab = backend.config().vocab_size;
  const auto state = backend.make_state(static_cast<int64_t>(ids.size())).value();
  std::vector<float> logits(ids.size() * vocab);
  for (size_t i = 0; i < ids.size(); i += chunk) {
    const size_t n = std::min(chunk, ids.size() - i);
    EXPECT_TRUE(
        backend.prefill(*state, ids.subspan(i, n), WantLogits::all, std::span(logits).subspan(i * vocab, n * vocab)));
  }
  return logits;
}

TEST_P(ShapeTest, CpuEqualsReference) {
  ModelConfig config = base_config();
  GetParam().change(config);
  const test::TemporaryDirectory directory;
  ASSERT_TRUE(write_synthetic(directory.path(), config, 1));
  auto opened = Checkpoint::open(directory.path());
  ASSERT_TRUE(opened) << opened.error().message();
  const auto checkpoint = std::make_shared<const Checkpoint>(std::move(opened).value());
  std::vector<int32_t> ids(21);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * 37 + 11) % config.vocab_size);

  auto reference = Backend::load("reference", checkpoint);
  ASSERT_TRUE(reference) << reference.error().message();
  const std::vector<float> want = run(**reference, ids, ids.size());
  for (const char* isa : cpu::isa_names) {
    if (!cpu::select_kernels(isa)) continue;
    for (const bool exact : {true, false}) {
      const auto backend = Backend::load("cpu", checkpoint, {.threads = 2, .exact = exact, .isa = isa}).value();
      for (const size_t chunk : {size_t{1}, size_t{5}, ids.size()}) {
        const std::string what = isa + std::string(exact ? ", exact" : "") + ", chunks of " + std::to_string(chunk);
        const std::vector<float> got = run(*backend, ids, chunk);
        const test::Difference d = test::difference(got, want);
        if (exact) {
          EXPECT_TRUE(d.finite && d.relative <= 1e-4) << what << ": " << d.text();
        } else {
          expect_mostly_close(got, want, config.vocab_size, what + ": " + d.text());
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShapeTest, testing::ValuesIn(cases),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Long enough for several KV blocks and for a decode step to split them into segments.
TEST(LongContext, SegmentsEqualReference) {
  ModelConfig config = test::small_config();
  config.layers = {LayerKind::linear_attention, LayerKind::full_attention};
  config.max_position_embeddings = 4096;
  const test::TemporaryDirectory directory;
  ASSERT_TRUE(write_synthetic(directory.path(), config, 2));
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(directory.path()).value());
  std::vector<int32_t> ids(2500);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>((i * i + 3 * i) % config.vocab_size);

  const auto reference = Backend::load("reference", checkpoint).value();
  const auto backend = Backend::load("cpu", checkpoint, {.threads = 4, .exact = true}).value();
  std::vector<float> want(config.vocab_size), got(config.vocab_size);
  const auto a = reference->make_state(4096).value(), b = backend->make_state(4096).value();
  ASSERT_TRUE(reference->prefill(*a, ids, WantLogits::last, want));
  ASSERT_TRUE(backend->prefill(*b, std::span(ids).first(2499), WantLogits::last, got));
  DecodeItem item{b.get(), ids.back(), got};
  ASSERT_TRUE(backend->decode({&item, 1}));
  EXPECT_LE(test::difference(got, want).relative, 1e-4);
}

}  // namespace
}  // namespace lily
