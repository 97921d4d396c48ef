// Every mechanism of the GPU engine that can be switched off leaves the results what they were.
//
// In prefill what goes through memory is bf16 there and was bf16 on the chip: the same, but for register-scan, whose sums come in
// another order. Then the bf16 rounding of some activations turns, each 2^-9 at most of one of many: less than the 2^-9 that all
// of them would give. Decode is float32 but for keys and values: sums in another order are off by some 1e-6, ten times that after
// random layers, and a key or value that turns is one of many.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "backend/backend.h"
#include "backend/gpu/devices.h"
#include "backend/gpu/plan_report.h"
#include "support/compare.h"
#include "support/oracle.h"
#include "support/run_lily.h"

namespace lily {
namespace {

using gpu::Mechanisms;

constexpr size_t first_part = 5, prompt = 38, steps = 2;  // full and ragged tiles

class AblationTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    LILY_NEED_ORACLE(std::string("a"));
    if (const auto there = gpu::open_device(GetParam()); !there) GTEST_SKIP() << there.error().message();
    oracle_ = test::open_oracle("a");
    auto backend = Backend::load(GetParam(), oracle_.checkpoint);
    ASSERT_TRUE(backend) << backend.error().message();
    backend_ = std::move(backend).value();
  }

  // Logits of the last token of a prompt, in two calls, and of the steps after it.
  std::vector<float> logits() {
    const auto ids = oracle_.input_ids();
    const auto vocab = static_cast<size_t>(backend_->config().vocab_size);
    const auto state = backend_->make_state(256).value();
    std::vector<float> all((1 + steps) * vocab);
    EXPECT_TRUE(backend_->prefill(*state, ids.first(first_part), WantLogits::none, {}));
    EXPECT_TRUE(backend_->prefill(*state, ids.subspan(first_part, prompt - first_part), WantLogits::last,
                                  std::span(all).first(vocab)));
    for (size_t i = 0; i < steps; ++i) {
      DecodeItem item{state.get(), ids[prompt + i], std::span(all).subspan((1 + i) * vocab, vocab)};
      EXPECT_TRUE(backend_->decode({&item, 1}));
    }
    return all;
  }

  std::vector<int32_t> tokens() {
    const auto ids = oracle_.input_ids();
    const auto state = backend_->make_state(64).value();
    EXPECT_TRUE(backend_->prefill(*state, ids.first(20), WantLogits::none, {}));
    const DeviceSampling greedy{.tokens = static_cast<uint32_t>(backend_->config().vocab_size)};
    std::vector<int32_t> got;
    EXPECT_TRUE(backend_->decode_ahead(*state, ids[20], greedy, [&](int32_t token) {
      got.push_back(token);
      return got.size() < 4;
    }));
    EXPECT_EQ(state->position(), 24);
    return got;
  }

  test::Oracle oracle_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(AblationTest, EachComputesTheSame) {
  const std::vector<float> want = logits();
  const std::vector<int32_t> want_tokens = tokens();
  EXPECT_GE(backend_->mechanisms().size(), 14u);
  for (const Mechanism& mechanism : backend_->mechanisms()) {
    ASSERT_TRUE(backend_->without(mechanism.name));
    const test::Difference d = test::difference(logits(), want);
    std::cout << mechanism.name << ": " << d.text() << "\n";
    EXPECT_TRUE(d.finite) << mechanism.name;
    EXPECT_LE(d.relative, mechanism.of_prefill ? 2e-3 : 1e-4) << mechanism.name;
    if (mechanism.name == "token-handoff") EXPECT_EQ(tokens(), want_tokens);
  }
  ASSERT_TRUE(backend_->without(""));
  EXPECT_EQ(logits(), want);
}

TEST_P(AblationTest, AnUnknownOneIsAnError) {
  const Result<void> done = backend_->without("nothing");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().got, "nothing");
}

// That a switch does something shows in what a card with many cores would be given.
TEST(AblationPlan, PlainFormsTakeTheFusedOnesPlaces) {
  LILY_NEED_ORACLE(std::string("a"));
  const ModelConfig config = test::open_oracle("a").checkpoint->config();
  const auto bits = "_" + std::to_string(config.quantization.fallback.bits);
  using Flag = bool Mechanisms::*;
  const auto plan = [&](Flag off, bool decode) {
    Mechanisms on;
    if (off) on.*off = false;
    return (decode ? gpu::report_decode(config, "cuda", 5000, on) : gpu::report_prefill(config, "cuda", 16, on))
        .value();
  };
  const gpu::PlanReport prefill = plan(nullptr, false), decode = plan(nullptr, true);
  struct Swap {
    Flag off;
    std::string absent, present;  // kernels
  };
  const auto check = [&](const Swap& swap, const gpu::PlanReport& full, bool of_decode) {
    const gpu::PlanReport without = plan(swap.off, of_decode);
    EXPECT_TRUE(full.by_kernel.contains(swap.absent)) << swap.absent;
    EXPECT_FALSE(without.by_kernel.contains(swap.absent)) << swap.absent;
    if (swap.present.empty()) return;
    EXPECT_FALSE(full.by_kernel.contains(swap.present)) << swap.present;
    EXPECT_TRUE(without.by_kernel.contains(swap.present)) << swap.present;
  };
  using M = Mechanisms;
  for (const Swap& swap : {Swap{&M::gate_up_fusion, "experts_gate_up" + bits, "silu_multiply"},
                           {&M::down_fusion, "experts_down" + bits, "weighted_sum"},
                           {&M::qk_fusion, "attend_step", "prepare_step"},
                           {&M::norm_fusion, "delta_step", "norm_gate"},
                           {&M::gqa_packing, "attend_step", "attend_alone"},
                           {&M::coalesced_kv, "attend_step", "attend_strided"},
                           {&M::split_attention, "attend_merge", ""}}) {
    check(swap, decode, true);
  }
  check({&M::fused_dequantisation, "gemm_16" + bits, "dequantize" + bits}, prefill, false);
  check({&M::adaptive_tile, "gemm_16" + bits, ""}, prefill, false);
  EXPECT_EQ(plan(&M::register_scan, false).by_kernel.at("delta_scan"), 16 * prefill.by_kernel.at("delta_scan"));
  const gpu::PlanReport in_turn = plan(&M::concurrency, false);
  EXPECT_EQ(in_turn.stages, in_turn.kernels);
  EXPECT_LT(prefill.stages, prefill.kernels);  // one sequence's decode is a chain as it is
}

TEST_P(AblationTest, WithoutChunksAPromptIsOne) {
  ASSERT_TRUE(backend_->without("chunking"));
  EXPECT_EQ(backend_->chunk(), backend_->config().max_position_embeddings);
  ASSERT_TRUE(backend_->without(""));
  EXPECT_LT(backend_->chunk(), backend_->config().max_position_embeddings);
}

TEST_P(AblationTest, TheProgramMeasuresThem) {
  const std::string bench = "bench -m " + oracle_.directory + " --backend " + GetParam() + " --ablate ";
  const auto run = test::run_lily(bench + "down-fusion,chunking --prefill 9 --depth 3 --decode 1 -r 2 --json -");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json rows = nlohmann::json::parse(run.out)["ablation"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["mechanism"], "chunking");
  EXPECT_EQ(rows[0]["length"], 9);
  EXPECT_GT(rows[0]["temporary_bytes"]["without"], 0);
  EXPECT_EQ(rows[1]["mechanism"], "down-fusion");
  EXPECT_EQ(rows[1]["depth"], 3);
  EXPECT_EQ(rows[1]["ratio"]["pairs"].size(), 2u);
  EXPECT_GT(rows[1]["ratio"]["median"], 0);
  const auto unknown = test::run_lily(bench + "chunking,none");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("expected all, fused-dequantisation, "), std::string::npos) << unknown.err;
}

INSTANTIATE_TEST_SUITE_P(All, AblationTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
