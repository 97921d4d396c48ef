// Several requests over a model without weights, whose every token depends on all tokens before it.
#include "runtime/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "runtime/sampler.h"
#include "runtime/session.h"
#include "support/byte_tokenizer.h"
#include "support/fake_backend.h"

namespace lily {
namespace {

using namespace std::chrono_literals;
using test::FakeBackend;
using test::FakeState;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int32_t> numbers(int32_t first, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = first + i;
  return ids;
}

struct Outcome {
  std::vector<int32_t> steps;  // ids, in order
  std::vector<Progress> progress;
  std::optional<Reply> reply;
  std::optional<Error> error;
};

Outcome wait_for(Job& job) {
  Outcome outcome;
  while (!outcome.reply && !outcome.error) {
    std::optional<JobEvent> event = job.wait(20s);
    if (!event) return ADD_FAILURE() << "no event in 20 s", outcome;
    if (const auto* step = std::get_if<ReplyStep>(&*event); step && step->id >= 0) outcome.steps.push_back(step->id);
    if (const auto* progress = std::get_if<Progress>(&*event)) outcome.progress.push_back(*progress);
    if (auto* reply = std::get_if<Reply>(&*event)) outcome.reply = std::move(*reply);
    if (auto* error = std::get_if<Error>(&*event)) outcome.error = std::move(*error);
  }
  return outcome;
}

class SchedulerTest : public testing::Test {
 protected:
  explicit SchedulerTest(int64_t context = 1 << 14) : backend_(300, context), tokenizer_(test::byte_tokenizer()) {}

  void start(const SchedulerOptions& options = {}) {
    scheduler_.reset();
    auto created = Scheduler::create(backend_, tokenizer_, options);
    ASSERT_TRUE(created) << created.error().message();
    scheduler_ = std::move(created).value();
  }

  static JobRequest request(std::vector<int32_t> prompt, int64_t max_tokens) {
    JobRequest request{.prompt = std::move(prompt)};
    request.reply.sampling.temperature = 0;
    request.reply.max_tokens = max_tokens;
    return request;
  }

  std::shared_ptr<Job> submit(JobRequest request) {
    std::shared_ptr<Job> job = scheduler_->submit(std::move(request));
    EXPECT_NE(job, nullptr);
    return job;
  }

  // What the model says when nothing else is asked of it.
  std::vector<int32_t> alone(const std::vector<int32_t>& prompt, int64_t tokens) {
    FakeBackend backend(300, 1 << 14);
    Session session = Session::create(backend).value();
    std::vector<int32_t> all = prompt;
    std::vector<int32_t> said;
    EXPECT_TRUE(session.sync(all));
    for (int64_t i = 0; i < tokens; ++i) {
      const auto logits = session.logits().first(static_cast<size_t>(tokenizer_.size()));
      said.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      EXPECT_TRUE(session.append(said.back()));
    }
    return said;
  }

  // Waits until the scheduler has nothing left, and its counts are those of all that ended.
  SchedulerStats idle() {
    for (int i = 0; i < 2000; ++i) {
      const SchedulerStats stats = scheduler_->stats();
      if (stats.running + stats.waiting == 0) return stats;
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "still busy after 2 s";
    return {};
  }

  FakeBackend backend_;
  Tokenizer tokenizer_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, AReplyIsThatOfTheModelAlone) {
  start();
  const auto outcome = wait_for(*submit(request(numbers(0, 50), 20)));
  ASSERT_TRUE(outcome.reply);
  EXPECT_EQ(outcome.steps, alone(numbers(0, 50), 20));
  EXPECT_EQ(outcome.reply->tokens, outcome.steps);
  EXPECT_EQ(outcome.reply->finish, Finish::length);
  EXPECT_EQ(outcome.reply->prompt_tokens, 50);
  EXPECT_EQ(outcome.reply->prefilled_tokens, 50);
  EXPECT_EQ(outcome.reply->decoded_tokens, 19);
  EXPECT_EQ(outcome.progress.back().prefilled, 50);
}

// CN-03 and the like: whatever else goes on, everybody gets what they would get alone, and decoding is shared.
TEST_F(SchedulerTest, ManyAtOnceDisturbNobody) {
  backend_.delay = 100us;
  start({.slots = 6, .queue_limit = 64, .chunk = 30});
  Random random(5);
  std::vector<std::shared_ptr<Job>> jobs;
  std::vector<std::vector<int32_t>> prompts;
  for (int i = 0; i < 24; ++i) {
    prompts.push_back(numbers(i % 5, 20 + static_cast<int32_t>(random.next() % 150)));
    jobs.push_back(submit(request(prompts.back(), 10 + i)));
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i % 4 == 3) jobs[i].reset();  // gone without a word
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i]) continue;
    const Outcome outcome = wait_for(*jobs[i]);
    ASSERT_TRUE(outcome.reply);
    EXPECT_EQ(outcome.steps, alone(prompts[i], 10 + static_cast<int64_t>(i))) << i;
  }
  const SchedulerStats stats = idle();
  EXPECT_EQ(stats.requests, 24);
  EXPECT_EQ(stats.finished + stats.cancelled, 24);
  EXPECT_GE(stats.finished, 18);
  const size_t largest = *std::max_element(backend_.batches.begin(), backend_.batches.end());
  EXPECT_GE(largest, 2u);
  EXPECT_LE(largest, 6u);
  EXPECT_THAT(backend_.breaches, IsEmpty());
}

TEST_F(SchedulerTest, PC_02_TheSamePromptAgainIsNotComputedAgain) {
  start();
  JobRequest first = request(numbers(0, 200), 5);
  first.boundaries = {100, 195};
  wait_for(*submit(first));
  const Outcome again = wait_for(*submit(first));
  EXPECT_EQ(again.reply->reused_tokens, 195);
  EXPECT_EQ(again.reply->prefilled_tokens, 5);
  EXPECT_EQ(again.steps, alone(numbers(0, 200), 5));
}

TEST_F(SchedulerTest, TheNextTurnComputesOnlyWhatIsNew) {
  start();
  JobRequest first = request(numbers(0, 100), 10);
  first.on_finished = [](const Reply&) { return std::vector<int32_t>{7, 8}; };
  const Outcome turn = wait_for(*submit(first));
  idle();
  std::vector<int32_t> next = numbers(0, 100);
  next.insert(next.end(), turn.steps.begin(), turn.steps.end());
  for (const int32_t token : {7, 8, 50, 51, 52}) next.push_back(token);
  const Outcome second = wait_for(*submit(request(next, 5)));
  EXPECT_EQ(second.reply->reused_tokens, 112);
  EXPECT_EQ(second.reply->prefilled_tokens, 3);
  EXPECT_EQ(second.steps, alone(next, 5));
}

// Several replies to one prompt: it is computed once.
TEST_F(SchedulerTest, APromptInTheMakingIsSharedToo) {
  backend_.delay = 2ms;
  start({.chunk = 100});
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 4; ++i) {
    JobRequest one = request(numbers(0, 290), 3);
    one.boundaries = {289};
    jobs.push_back(submit(one));
  }
  for (const auto& job : jobs) EXPECT_EQ(wait_for(*job).steps, alone(numbers(0, 290), 3));
  EXPECT_EQ(idle().prefilled_tokens, 290 + 3);
}

TEST_F(SchedulerTest, CN_01_ADroppedJobStopsWithinAStep) {
  backend_.delay = 1ms;
  start();
  auto job = submit(request(numbers(0, 10), 10'000));
  while (true) {
    const auto event = job->wait(20s);
    ASSERT_TRUE(event);
    if (std::get_if<ReplyStep>(&*event)) break;
  }
  job.reset();
  const auto before = std::chrono::steady_clock::now();
  const SchedulerStats stats = idle();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 1s);
  EXPECT_EQ(stats.cancelled, 1);
  EXPECT_LT(backend_.decoded, 1000);
}

TEST_F(SchedulerTest, CN_04_APrefillStopsAtAChunkAndGoesOnFromThere) {
  backend_.delay = 20ms;
  start({.chunk = 20});
  auto job = submit(request(numbers(0, 290), 3));
  int64_t done = 0;
  while (done < 60) {
    const auto event = job->wait(20s);
    ASSERT_TRUE(event);
    if (const auto* progress = std::get_if<Progress>(&*event)) done = progress->prefilled;
  }
  job.reset();
  const SchedulerStats stats = idle();
  EXPECT_LT(stats.prefilled_tokens, 290);
  backend_.delay = 0ms;
  const Outcome again = wait_for(*submit(request(numbers(0, 290), 3)));
  EXPECT_GE(again.reply->reused_tokens, done);
  EXPECT_EQ(again.steps, alone(numbers(0, 290), 3));
}

TEST_F(SchedulerTest, CN_03_CancellingAQueuedJobLeavesTheRunningOneAlone) {
  backend_.delay = 1ms;
  start({.slots = 1});
  const auto running = submit(request(numbers(0, 10), 50));
  submit(request(numbers(5, 10), 50)).reset();
  EXPECT_EQ(wait_for(*running).steps, alone(numbers(0, 10), 50));
  EXPECT_EQ(idle().cancelled, 1);
}

TEST_F(SchedulerTest, AFullQueueIsSaidAtOnce) {
  backend_.delay = 5ms;
  start({.slots = 1, .queue_limit = 2});
  EXPECT_EQ(scheduler_->stats().cache_budget, SchedulerOptions{}.cache_bytes);  // known from the start
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(submit(request(numbers(i, 10), 20)));
  EXPECT_EQ(scheduler_->submit(request(numbers(9, 10), 5)), nullptr);
  EXPECT_EQ(scheduler_->stats().rejected, 1);
  EXPECT_EQ(scheduler_->stats().requests, 3);
  for (const auto& job : jobs) EXPECT_TRUE(wait_for(*job).reply);
  idle();
  EXPECT_TRUE(wait_for(*submit(request(numbers(9, 10), 5))).reply);
}

// Decoding goes on between the chunks of a long prompt, and the prompt is done while others still decode.
TEST_F(SchedulerTest, NobodyStallsAndNobodyStarves) {
  backend_.delay = 1ms;
  start({.chunk = 10});
  const auto writer = submit(request(numbers(0, 10), 200));
  while (backend_.decoded == 0) std::this_thread::sleep_for(1ms);
  const auto reader = submit(request(numbers(20, 270), 1));
  EXPECT_TRUE(wait_for(*writer).reply);
  EXPECT_TRUE(wait_for(*reader).reply);
  idle();
  const std::string together = backend_.calls.substr(0, backend_.calls.rfind('d'));
  EXPECT_EQ(together.find("pp", together.find('d')), together.npos) << "two chunks without a token between them";
  EXPECT_GE(std::count(together.begin(), together.end(), 'p'), 28) << "the reader waited until the writer was done";
}

TEST_F(SchedulerTest, AFailureEndsOneRequestOnly) {
  start();
  const auto bad = submit(request({1, 2, 100'000}, 5));
  const auto good = submit(request(numbers(0, 10), 5));
  EXPECT_THAT(wait_for(*bad).error->message(), HasSubstr("vocabulary"));
  EXPECT_EQ(wait_for(*good).steps, alone(numbers(0, 10), 5));
  EXPECT_EQ(idle().failed, 1);
}

TEST_F(SchedulerTest, CX_03_TheContextEndsAReplyWithLength) {
  start({.context = 40});
  EXPECT_EQ(scheduler_->context(), 40);
  const Outcome outcome = wait_for(*submit(request(numbers(0, 30), 1000)));
  EXPECT_EQ(outcome.reply->finish, Finish::context_full);
  EXPECT_EQ(outcome.steps, alone(numbers(0, 30), 11));
}

// CN-07: sequences that grow past the memory give way in turn; all come to their end, as if alone.
TEST_F(SchedulerTest, CN_07_TheYoungestGivesWayWhereMemoryRunsOut) {
  const StateCost cost = backend_.state_cost();
  const size_t budget = 6 * cost.fixed + 2400 * cost.per_token;
  start({.slots = 4, .context = 1200, .cache_bytes = budget});
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(submit(request(numbers(i, 100), 900)));
  for (int i = 0; i < 4; ++i) {
    const Outcome outcome = wait_for(*jobs[static_cast<size_t>(i)]);
    ASSERT_TRUE(outcome.reply);
    EXPECT_EQ(outcome.steps, alone(numbers(i, 100), 900)) << i;
  }
  EXPECT_GT(idle().prefilled_tokens, 4 * 100) << "nobody gave way: the budget was too large for this test";
  EXPECT_LE(backend_.state_bytes(), budget);
}

// CX-02: the advertised window is one request's, whatever the slots.
TEST_F(SchedulerTest, CX_02_TheContextFitsTheBudget) {
  const StateCost cost = backend_.state_cost();
  start({.slots = 4, .cache_bytes = 4 * cost.fixed + 3000 * cost.per_token});
  const int64_t context = scheduler_->context();
  EXPECT_GT(context, 2000);
  std::vector<std::shared_ptr<Job>> jobs;
  std::vector<int32_t> whole(static_cast<size_t>(context - 1), 5);
  for (int32_t i = 0; i < 4; ++i) {
    whole[0] = i;
    jobs.push_back(submit(request(whole, 1)));
  }
  for (const auto& job : jobs) EXPECT_TRUE(wait_for(*job).reply);

  const auto refused = Scheduler::create(backend_, tokenizer_, {.context = 10'000, .cache_bytes = 5000});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("cache size: too small"));
}

TEST_F(SchedulerTest, PC_13_MemoryIsFlatOverManyRequests) {
  const StateCost cost = backend_.state_cost();
  const size_t budget = 20 * cost.fixed + 3000 * cost.per_token;
  start({.context = 1000, .cache_bytes = budget});
  for (int32_t i = 0; i < 200; ++i) {
    JobRequest one = request(numbers(i % 100, 150), 3);
    one.boundaries = {50, 149};
    one.prompt[0] = i;
    EXPECT_TRUE(wait_for(*submit(one)).reply);
    ASSERT_LE(backend_.state_bytes(), budget);
  }
}

TEST_F(SchedulerTest, StoppingEndsWhatRunsAndWhatWaits) {
  backend_.delay = 1ms;
  start({.slots = 1});
  const auto running = submit(request(numbers(0, 10), 100'000)), waiting = submit(request(numbers(0, 10), 5));
  scheduler_.reset();
  EXPECT_EQ(wait_for(*running).reply->finish, Finish::cancelled);
  EXPECT_EQ(wait_for(*waiting).reply->finish, Finish::cancelled);
}

}  // namespace
}  // namespace lily
