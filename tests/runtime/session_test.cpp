#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/sampler.h"
#include "support/fake_backend.h"

namespace lily {
namespace {

using test::FakeBackend;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int32_t> numbers(int32_t first, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = first + i;
  return ids;
}

std::vector<int32_t> operator+(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

SyncReport sync(Session& session, const std::vector<int32_t>& tokens, const SyncOptions& options = {}) {
  const Result<SyncReport> report = session.sync(tokens, options);
  EXPECT_TRUE(report.ok()) << report.error().message();
  return report.ok() ? *report : SyncReport{};
}

std::vector<float> cold_logits(FakeBackend& backend, const std::vector<int32_t>& tokens) {
  Session session = Session::create(backend).value();
  sync(session, tokens);
  return {session.logits().begin(), session.logits().end()};
}

void expect_logits_of(Session& session, FakeBackend& backend, const std::vector<int32_t>& tokens) {
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), session.tokens().begin(), session.tokens().end()));
  EXPECT_EQ(std::vector<float>(session.logits().begin(), session.logits().end()), cold_logits(backend, tokens));
}

TEST(Session, PrefillsInBoundedChunksAndReportsProgress) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  std::vector<int64_t> done;
  const SyncReport report = sync(session, numbers(0, 60), {.chunk = 25, .progress = [&](int64_t part, int64_t total) {
                                                             done.push_back(part);
                                                             EXPECT_EQ(total, 60);
                                                           }});
  EXPECT_THAT(backend.chunks, ElementsAre(25, 25, 10));
  EXPECT_THAT(done, ElementsAre(0, 25, 50, 60));
  EXPECT_EQ(report.reused, 0);
  EXPECT_EQ(report.prefilled, 60);
  EXPECT_FALSE(report.cancelled);
}

TEST(Session, AppendingPrefillsOnlyWhatIsNew) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  sync(session, numbers(0, 10));
  ASSERT_TRUE(session.append(10).ok());
  const SyncReport report = sync(session, numbers(0, 15));
  EXPECT_EQ(report.reused, 11);
  EXPECT_EQ(report.prefilled, 4);
  EXPECT_EQ(backend.resets, 0);
  expect_logits_of(session, backend, numbers(0, 15));
}

TEST(Session, TheSameTokensAgainCostNothing) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  sync(session, numbers(0, 10));
  EXPECT_EQ(sync(session, numbers(0, 10)).prefilled, 0);
  expect_logits_of(session, backend, numbers(0, 10));
}

TEST(Session, AnEditGoesBackToTheNewestUsableSnapshot) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  sync(session, numbers(0, 40), {.boundaries = {10, 20, 30}});
  const std::vector<int32_t> edited = numbers(0, 25) + numbers(50, 5);
  const SyncReport report = sync(session, edited);
  EXPECT_EQ(report.reused, 20);
  EXPECT_EQ(report.prefilled, 10);
  EXPECT_EQ(backend.restores, 1);
  expect_logits_of(session, backend, edited);
  EXPECT_EQ(sync(session, numbers(0, 40)).reused, 30);  // the other branch is still there
  expect_logits_of(session, backend, numbers(0, 40));
  EXPECT_THAT(backend.breaches, IsEmpty());
}

TEST(Session, WithoutASnapshotAnEditStartsOver) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  sync(session, numbers(0, 40));
  EXPECT_EQ(sync(session, numbers(0, 20)).reused, 0);
  EXPECT_EQ(backend.resets, 1);
  expect_logits_of(session, backend, numbers(0, 20));
}

TEST(Session, AShorterPrefixLeavesOneTokenForTheLogits) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  sync(session, numbers(0, 40), {.boundaries = {10, 20}});
  const SyncReport report = sync(session, numbers(0, 20));  // exactly at a snapshot, which has no logits
  EXPECT_EQ(report.reused, 10);
  expect_logits_of(session, backend, numbers(0, 20));
}

TEST(Session, SnapshotsStayWithinTheBudget) {
  FakeBackend backend(256);
  const size_t budget = 20 * test::FakeState::fixed_bytes;
  Session session = Session::create(backend, 0, std::make_shared<PrefixCache>(backend, budget)).value();
  SyncOptions options;
  for (int64_t at = 5; at < 200; at += 5) options.boundaries.push_back(at);
  sync(session, numbers(0, 200), options);
  EXPECT_LE(backend.state_bytes(), budget);
  EXPECT_EQ(sync(session, numbers(0, 198)).reused, 195);  // the newest are kept
  EXPECT_EQ(sync(session, numbers(0, 50)).reused, 0);
}

// Two questions to one long text: nobody marked its end, but from the second on it is known where they part.
TEST(Session, WhereTwoSequencesPartASnapshotIsTaken) {
  FakeBackend backend(256);
  const auto cache = std::make_shared<PrefixCache>(backend, size_t{1} << 20);
  std::vector<int64_t> reused;
  for (int32_t question = 0; question < 3; ++question) {
    Session session = Session::create(backend, 0, cache).value();
    const std::vector<int32_t> tokens = numbers(0, 100) + numbers(150 + question, 20);
    reused.push_back(sync(session, tokens, {.boundaries = {115}}).reused);
    expect_logits_of(session, backend, tokens);
  }
  EXPECT_THAT(reused, ElementsAre(0, 0, 100));
}

// A prefill of a long prompt that was cut off by a failure still left snapshots behind.
TEST(Session, ALongPrefillLeavesSnapshotsOnItsWay) {
  FakeBackend backend(8);
  const auto cache = std::make_shared<PrefixCache>(backend, size_t{1} << 20);
  std::vector<int32_t> tokens(10'000);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 7);
  Session session = Session::create(backend, 0, cache).value();
  std::atomic<bool> cancel = false;
  SyncOptions options{.cancel = &cancel};
  options.progress = [&](int64_t done, int64_t) { backend.fail_next_prefill = done >= 9000; };
  EXPECT_FALSE(session.sync(tokens, options).ok());
  Session another = Session::create(backend, 0, cache).value();
  EXPECT_EQ(sync(another, tokens).reused, 8192);
}

TEST(Session, CancelStopsWithinAChunkAndKeepsWhatIsDone) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  std::atomic<bool> cancel = false;
  SyncOptions options{.chunk = 10, .cancel = &cancel};
  options.progress = [&](int64_t done, int64_t) { cancel = done >= 20; };
  const SyncReport report = sync(session, numbers(0, 50), options);
  EXPECT_TRUE(report.cancelled);
  EXPECT_EQ(report.prefilled, 20);
  const SyncReport again = sync(session, numbers(0, 50));
  EXPECT_EQ(again.reused, 20);
  expect_logits_of(session, backend, numbers(0, 50));
}

TEST(Session, LogitsAreNotTrustedAfterACancel) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  std::atomic<bool> cancel = false;
  SyncOptions options{.chunk = 10, .cancel = &cancel};
  options.progress = [&](int64_t, int64_t) { cancel = true; };
  sync(session, numbers(0, 50), options);
  sync(session, numbers(0, 10));  // exactly what is held, but no logits were asked for there
  expect_logits_of(session, backend, numbers(0, 10));
}

TEST(Session, AFailedPrefillLeavesWhatWasThere) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  sync(session, numbers(0, 10));
  backend.fail_next_prefill = true;
  EXPECT_FALSE(session.sync(numbers(0, 20)).ok());
  EXPECT_EQ(sync(session, numbers(0, 20)).reused, 10);
  expect_logits_of(session, backend, numbers(0, 20));
}

TEST(Session, AFullContextIsAnErrorWithBothCounts) {
  FakeBackend backend(64, 16);
  Session session = Session::create(backend).value();
  EXPECT_EQ(session.capacity(), 16);
  const auto report = session.sync(numbers(0, 17));
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message(), HasSubstr("context is full: expected at most 16 tokens, got 17"));
  sync(session, numbers(0, 16));
  EXPECT_TRUE(session.full());
  EXPECT_THAT(session.append(1).error().message(), HasSubstr("context is full"));
  expect_logits_of(session, backend, numbers(0, 16));
}

TEST(Session, CapacityIsAtMostTheModelsContext) {
  FakeBackend backend(64, 100);
  EXPECT_EQ(Session::create(backend, 50)->capacity(), 50);
  EXPECT_EQ(Session::create(backend, 5000)->capacity(), 100);
}

TEST(Session, NoTokensIsAnError) {
  FakeBackend backend(64);
  Session session = Session::create(backend).value();
  EXPECT_FALSE(session.sync({}).ok());
}

// Random histories of appended turns, edits and regenerations, with decode steps, cancels and failures between them:
// whatever is reused, the logits are those of a cold run, bit for bit.
TEST(Session, AHitIsEqualToAColdRun) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const auto below = [&](int64_t limit) {
      return static_cast<int64_t>(random.next() % static_cast<uint64_t>(limit));
    };
    FakeBackend backend(8);  // few ids: edits often share a prefix by chance
    Session session = Session::create(backend).value();
    std::vector<int32_t> tokens = {0};
    int64_t reused = 0;
    for (int step = 0; step < 30; ++step) {
      if (below(3) == 0) tokens.resize(static_cast<size_t>(1 + below(static_cast<int64_t>(tokens.size()))));
      for (int64_t i = below(30); i > 0; --i) tokens.push_back(static_cast<int32_t>(below(8)));
      std::atomic<bool> cancel = false;
      SyncOptions options{.chunk = 1 + below(9), .cancel = &cancel};
      for (size_t at = 3; at <= tokens.size(); at += 7) options.boundaries.push_back(static_cast<int64_t>(at));
      if (below(5) == 0) options.progress = [&](int64_t, int64_t) { cancel = below(2) == 0; };
      backend.fail_next_prefill = below(10) == 0;
      const auto report = session.sync(tokens, options);
      backend.fail_next_prefill = false;
      if (!report || report->cancelled) continue;
      reused += report->reused;
      expect_logits_of(session, backend, tokens);
      for (int64_t i = below(6); i > 0; --i) {
        tokens.push_back(static_cast<int32_t>(below(8)));
        ASSERT_TRUE(session.append(tokens.back()).ok());
        expect_logits_of(session, backend, tokens);
      }
    }
    EXPECT_GT(reused, 0);
    ASSERT_THAT(backend.breaches, IsEmpty());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lily
