// Prefix reuse on a real model: whatever is reused, the logits are those of a cold run.
#include <gtest/gtest.h>

#include "runtime/sampler.h"
#include "runtime/session.h"
#include "support/compare.h"
#include "support/oracle.h"

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

INSTANTIATE_TEST_SUITE_P(Backends, SessionModel, testing::Values("cpu", "reference"));

}  // namespace
}  // namespace lily
