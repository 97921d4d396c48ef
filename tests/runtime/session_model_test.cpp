// Prefix reuse on a real model: whatever is reused, the logits are those of a cold run.
#include <gtest/gtest.h>

#include "runtime/generate.h"
#include "runtime/sampler.h"
#include "runtime/session.h"
#include "support/compare.h"
#include "support/oracle.h"
#include "support/tiny_model.h"

namespace lily {
namespace {

class SessionModel : public testing::TestWithParam<const char*> {};

// The chunks of the two runs differ, and with them the order of sums: the bound is that of chunked prefill.
TEST_P(SessionModel, AHitIsEqualToAColdRun) {
  LILY_NEED_ORACLE("a");
  const test::Oracle oracle = test::open_oracle("a");
  const std::unique_ptr<Backend> backend =
      std::move(Backend::load(GetParam(), oracle.checkpoint, {.exact = true})).value();
  const auto vocab = static_cast<int64_t>(backend->config().vocab_size);
  Session session = Session::create(*backend, 400).value();
  Random random(11);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random.next() % static_cast<uint64_t>(limit)); };
  std::vector<int32_t> tokens = {5};
  int64_t reused = 0;
  const int steps = std::string(GetParam()) == "reference" ? 4 : 25;
  for (int step = 0; step < steps; ++step) {
    if (below(3) == 0) tokens.resize(static_cast<size_t>(1 + below(static_cast<int64_t>(tokens.size()))));
    for (int64_t i = 1 + below(8); i > 0; --i) tokens.push_back(static_cast<int32_t>(below(vocab)));
    SyncOptions options{.chunk = 1 + below(40)};
    for (size_t at = 4; at <= tokens.size(); at += 9) options.boundaries.push_back(static_cast<int64_t>(at));
    reused += session.sync(tokens, options).value().reused;
    for (int64_t i = below(4); i > 0; --i) {
      tokens.push_back(static_cast<int32_t>(below(vocab)));
      ASSERT_TRUE(session.append(tokens.back()).ok());
    }
    Session cold = Session::create(*backend, 400).value();
    ASSERT_TRUE(cold.sync(tokens).ok());
    const test::Difference difference = test::difference(session.logits(), cold.logits());
    EXPECT_LE(difference.relative, 1e-4) << difference.text() << " in step " << step;
    EXPECT_TRUE(difference.finite);
  }
  EXPECT_GT(reused, 0);
}

// PC-08: every prefix length, every chunk size: the same greedy tokens as a cold run.
TEST(SessionModelTiny, PC_08_EveryPrefixAndChunkGivesTheSameTokens) {
  test::TinyModel& model = test::tiny_model();
  const auto backend = std::move(Backend::load("cpu", model.checkpoint, {.exact = true})).value();
  const std::string text =
      "<|im_start|>user\nMy name is Ada and I live in Turin. I have a dog called Rex, who is brown and old.<|im_end|>\n"
      "<|im_start|>assistant\nHello, Ada!<|im_end|>\n<|im_start|>user\nWhere do I live?<|im_end|>\n"
      "<|im_start|>assistant\n<think>\n";
  const std::vector<int32_t> prompt = model.tokenizer.encode(text, true);
  const auto reply = [&](Session& session, int64_t chunk) {
    GenerateOptions options;
    options.reply.sampling.temperature = 0;
    options.reply.max_tokens = 16;
    options.sync.chunk = chunk;
    return generate(session, &model.tokenizer, prompt, options).value();
  };
  Session cold = Session::create(*backend, 512).value();
  const std::vector<int32_t> want = reply(cold, 512).tokens;
  for (const int64_t chunk : {1, 7, 64, 512}) {
    for (size_t prefix = 1; prefix < prompt.size(); prefix += chunk == 7 ? 1 : 11) {
      const auto cache = std::make_shared<PrefixCache>(*backend, size_t{1} << 30);
      Session first = Session::create(*backend, 512, cache).value();
      ASSERT_TRUE(first.sync(std::span(prompt).first(prefix), {.boundaries = {static_cast<int64_t>(prefix)}}));
      Session second = Session::create(*backend, 512, cache).value();
      const Reply got = reply(second, chunk);
      EXPECT_EQ(got.reused_tokens, static_cast<int64_t>(prefix));
      EXPECT_EQ(got.tokens, want) << "prefix " << prefix << ", chunks of " << chunk;
    }
  }
}

// NM-07: where kernels switch, nothing jumps: the logits of n tokens are those of n - 1 and one more.
TEST(SessionModelTiny, NM_07_LengthsAtWhichKernelsSwitch) {
  test::TinyModel& model = test::tiny_model();
  const std::vector<int32_t> filler = model.tokenizer.encode("a harbour is a place of shelter for ships; ");
  std::vector<int32_t> ids;
  while (ids.size() < 520) ids.insert(ids.end(), filler.begin(), filler.end());
  for (const size_t length : {3, 4, 5, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513}) {
    const auto tokens = std::span(ids).first(length);
    Session whole = Session::create(*model.backend, 1024).value(),
            stepped = Session::create(*model.backend, 1024).value();
    ASSERT_TRUE(whole.sync(tokens));
    ASSERT_TRUE(stepped.sync(tokens.first(length - 1)));
    ASSERT_TRUE(stepped.append(tokens.back()));
    const test::Difference d = test::difference(whole.logits(), stepped.logits());
    EXPECT_TRUE(d.finite && d.relative <= 0.01) << length << " tokens: " << d.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SessionModel, testing::Values("cpu", "reference"));

}  // namespace
}  // namespace lily
