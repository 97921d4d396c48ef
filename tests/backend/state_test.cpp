// What sequences keep and share: snapshots outlive their state, fork, and survive being written; batches decode as singles.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "model/synthetic.h"
#include "support/compare.h"
#include "support/temporary_directory.h"
#include "support/test_model.h"

namespace lily {
namespace {

struct Target {
  const char* backend;
  bool exact;
  double tolerance;  // between ways that group tokens differently; the fast path rounds activations at 2^-16
};

class StateTest : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    ModelConfig config = test::small_config();
    config.max_position_embeddings = 1024;
    ASSERT_TRUE(write_synthetic(directory_.path(), config, 2));
    const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(directory_.path()).value());
    backend_ = Backend::load(GetParam().backend, checkpoint, {.threads = 2, .exact = GetParam().exact}).value();
    for (int32_t i = 0; i < 700; ++i) ids_.push_back((i * i + 3 * i) % config.vocab_size);
  }

  std::vector<float> prefill(State& state, std::span<const int32_t> tokens) {
    std::vector<float> logits(backend_->config().vocab_size);
    const Result<void> done = backend_->prefill(state, tokens, WantLogits::last, logits);
    EXPECT_TRUE(done) << done.error().message();
    return logits;
  }
  std::unique_ptr<State> state() { return backend_->make_state(1024).value(); }
  std::span<const int32_t> ids(size_t first, size_t end) const { return std::span(ids_).subspan(first, end - first); }

  std::vector<std::byte> written(const Snapshot& snapshot, int64_t from) {
    std::vector<std::byte> data;
    snapshot.write(from, [&](std::span<const std::byte> part) { data.insert(data.end(), part.begin(), part.end()); });
    return data;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Backend> backend_;
  std::vector<int32_t> ids_;
};

// 300 tokens: the second block is shared, and both branches write to it.
TEST_P(StateTest, ASnapshotForksIntoIndependentSequences) {
  const auto first = state(), second = state();
  prefill(*first, ids(0, 300));
  const auto snapshot = backend_->snapshot(*first);
  const std::vector<float> kept = prefill(*first, ids(300, 340));
  prefill(*second, ids(500, 700));  // something else before
  backend_->restore(*second, *snapshot);
  EXPECT_EQ(second->position(), 300);
  prefill(*second, ids(400, 440));
  backend_->restore(*second, *snapshot);
  EXPECT_EQ(prefill(*second, ids(300, 340)), kept);
  EXPECT_EQ(prefill(*first, ids(340, 350)), prefill(*second, ids(340, 350)));
}

TEST_P(StateTest, AWrittenSnapshotIsTheSame) {
  std::unique_ptr<Snapshot> base, last;
  std::vector<std::byte> base_data, last_data;
  std::vector<float> kept;
  {
    const auto sequence = state();
    prefill(*sequence, ids(0, 300));
    base = backend_->snapshot(*sequence);
    base_data = written(*base, 0);
    prefill(*sequence, ids(300, 600));
    last = backend_->snapshot(*sequence);
    last_data = written(*last, base->position());
    EXPECT_LT(last_data.size(), written(*last, 0).size());
    kept = prefill(*sequence, ids(600, 620));
  }
  const auto read_base = backend_->read_snapshot(nullptr, 300, base_data).value();
  const auto read_last = backend_->read_snapshot(read_base.get(), 600, last_data).value();
  const auto sequence = state();
  backend_->restore(*sequence, *read_last);
  EXPECT_EQ(prefill(*sequence, ids(600, 620)), kept);

  last_data.pop_back();
  EXPECT_FALSE(backend_->read_snapshot(read_base.get(), 600, last_data));
  EXPECT_FALSE(backend_->read_snapshot(nullptr, 600, last_data));
  EXPECT_FALSE(backend_->read_snapshot(read_base.get(), 200, base_data));
  EXPECT_FALSE(backend_->read_snapshot(nullptr, 300, {}));
}

TEST_P(StateTest, EveryByteIsCountedOnceAndGivenBack) {
  const StateCost cost = backend_->state_cost();
  EXPECT_EQ(backend_->state_bytes(), 0u);
  {
    const auto sequence = state();
    EXPECT_EQ(backend_->state_bytes(), cost.fixed);
    prefill(*sequence, ids(0, 512));
    EXPECT_EQ(backend_->state_bytes(), cost.fixed + 512 * cost.per_token);
    const auto snapshot = backend_->snapshot(*sequence);
    const size_t held = backend_->state_bytes();
    EXPECT_LE(held, 2 * (cost.fixed + 512 * cost.per_token));
    backend_->reset(*sequence);
    EXPECT_LE(backend_->state_bytes(), held);
  }
  EXPECT_EQ(backend_->state_bytes(), 0u);
}

// More items than the GEMV takes at once, at positions in different blocks.
TEST_P(StateTest, ABatchDecodesAsItsSequencesDoAlone) {
  const size_t vocab = static_cast<size_t>(backend_->config().vocab_size);
  for (const size_t count : {2, 3, 7}) {
    std::vector<std::unique_ptr<State>> together, alone;
    std::vector<std::vector<float>> got(count, std::vector<float>(vocab));
    for (size_t i = 0; i < count; ++i) {
      for (auto* states : {&together, &alone}) {
        states->push_back(state());
        prefill(*states->back(), ids(i, i + 60 * (i + 1)));
      }
    }
    for (size_t step = 0; step < 3; ++step) {
      std::vector<DecodeItem> batch;
      for (size_t i = 0; i < count; ++i) batch.push_back({together[i].get(), ids_[100 * i + step], got[i]});
      ASSERT_TRUE(backend_->decode(batch));
      for (size_t i = 0; i < count; ++i) {
        std::vector<float> want(vocab);
        DecodeItem item{alone[i].get(), ids_[100 * i + step], want};
        ASSERT_TRUE(backend_->decode({&item, 1}));
        const test::Difference d = test::difference(got[i], want);
        EXPECT_TRUE(d.finite && d.relative <= GetParam().tolerance)
            << count << " items, item " << i << ", step " << step << ": " << d.text();
        EXPECT_EQ(together[i]->position(), alone[i]->position());
      }
    }
  }
}

TEST_P(StateTest, ABadItemLeavesTheWholeBatchAsItWas) {
  const auto a = state(), b = state();
  prefill(*a, ids(0, 10));
  prefill(*b, ids(0, 10));
  std::vector<float> logits(2 * static_cast<size_t>(backend_->config().vocab_size));
  const auto half = std::span(logits).first(logits.size() / 2);
  DecodeItem batch[] = {{a.get(), 1, half}, {b.get(), -1, half}};
  EXPECT_FALSE(backend_->decode(batch));
  EXPECT_EQ(a->position(), 10);
  EXPECT_EQ(b->position(), 10);
}

INSTANTIATE_TEST_SUITE_P(Backends, StateTest,
                         testing::Values(Target{"cpu", true, 1e-4}, Target{"cpu", false, 2e-2},
                                         Target{"reference", true, 0}),
                         [](const auto& target) {
                           return std::string(target.param.backend) + (target.param.exact ? "_exact" : "");
                         });

}  // namespace
}  // namespace lily
