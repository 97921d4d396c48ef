// The GPU engine on a device, by the bars of docs/performance.md.
//
// Activations are bf16 in prefill and float32 in decode. The oracles' weights are random and amplify every rounding, so a bar
// for the logits is what rounding does to the reference itself; the best token must stay the best where its lead is real.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <tuple>

#include "backend/backend.h"
#include "backend/gpu/devices.h"
#include "model/reference.h"
#include "model/weights.h"
#include "support/compare.h"
#include "support/oracle.h"

namespace lily {
namespace {

using Case = std::tuple<std::string, std::string>;  // device, oracle

class GpuEngineTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto& [device, name] = GetParam();
    LILY_NEED_ORACLE(name);
    if (const auto there = gpu::open_device(device); !there) GTEST_SKIP() << there.error().message();
    oracle_ = test::open_oracle(name);
    auto backend = Backend::load(device, oracle_.checkpoint);
    ASSERT_TRUE(backend) << backend.error().message();
    backend_ = std::move(backend).value();
    vocab_ = static_cast<size_t>(backend_->config().vocab_size);
  }

  std::unique_ptr<State> state() { return backend_->make_state(256).value(); }

  std::vector<float> prefill(State& state, std::span<const int32_t> ids, size_t chunk) {
    std::vector<float> logits(ids.size() * vocab_);
    for (size_t i = 0; i < ids.size(); i += chunk) {
      const size_t n = std::min(chunk, ids.size() - i);
      const auto done = backend_->prefill(state, ids.subspan(i, n), WantLogits::all,
                                          std::span(logits).subspan(i * vocab_, n * vocab_));
      EXPECT_TRUE(done) << done.error().message();
    }
    return logits;
  }

  std::vector<float> decode(State& state, std::span<const int32_t> ids) {
    std::vector<float> logits(ids.size() * vocab_);
    for (size_t i = 0; i < ids.size(); ++i) {
      DecodeItem item{&state, ids[i], std::span(logits).subspan(i * vocab_, vocab_)};
      const auto done = backend_->decode({&item, 1});
      EXPECT_TRUE(done) << done.error().message();
    }
    return logits;
  }

  // What rounding activations to bf16 does to the reference, relative; computed once for each oracle.
  double rounding_error() {
    static std::map<std::string, double> errors;
    const std::string& name = std::get<1>(GetParam());
    if (!errors.contains(name)) {
      const ModelConfig& config = oracle_.checkpoint->config();
      const ModelWeights weights = bind_weights(*oracle_.checkpoint).value();
      ReferenceState rounded(config, true);
      const std::vector<float> hidden = reference_forward(config, weights, rounded, oracle_.input_ids());
      errors[name] = test::difference(reference_logits(weights, hidden), oracle_.get<float>("logits")).relative;
    }
    return errors[name];
  }

  // The bars, for the logits of positions from `first` on.
  void expect_faithful(std::span<const float> got, size_t first, const char* what) {
    const std::span<const float> want = oracle_.get<float>("logits").subspan(first * vocab_, got.size());
    const test::Difference d = test::difference(got, want);
    const test::Agreement top1 = test::top1_agreement(got, want, static_cast<int64_t>(vocab_), 0.5f);
    std::cout << what << ": " << d.text() << "; rounding alone " << rounding_error() << "; same top id at "
              << top1.equal << " of " << top1.positions << " positions with a margin over 0.5\n";
    EXPECT_TRUE(d.finite) << what;
    EXPECT_LE(d.relative, 1.3 * rounding_error()) << what;
    EXPECT_GE(static_cast<double>(top1.equal), 0.99 * static_cast<double>(top1.positions)) << what;
  }

  test::Oracle oracle_;
  std::unique_ptr<Backend> backend_;
  size_t vocab_ = 0;
};

TEST_P(GpuEngineTest, PrefillIsFaithful) {
  const auto ids = oracle_.input_ids();
  const auto sequence = state();
  expect_faithful(prefill(*sequence, ids, ids.size()), 0, "prefill");
  const auto pieces = state();
  expect_faithful(prefill(*pieces, ids, 37), 0, "prefill in chunks of 37");
}

TEST_P(GpuEngineTest, DecodeIsFaithful) {
  const auto ids = oracle_.input_ids().first(64);
  const auto sequence = state();
  prefill(*sequence, ids.first(30), 30);
  expect_faithful(decode(*sequence, ids.subspan(30)), 30, "decode after a prefill");
}

TEST_P(GpuEngineTest, RestoredEqualsKept) {
  const auto ids = oracle_.input_ids();
  const auto sequence = state();
  prefill(*sequence, ids.first(40), 40);
  const auto snapshot = backend_->snapshot(*sequence);
  const std::vector<float> want = decode(*sequence, ids.subspan(40, 3));
  prefill(*sequence, ids.subspan(90, 20), 20);
  backend_->restore(*sequence, *snapshot);
  EXPECT_EQ(sequence->position(), 40);
  EXPECT_EQ(decode(*sequence, ids.subspan(40, 3)), want);

  std::vector<std::byte> written;
  snapshot->write(0, [&](std::span<const std::byte> part) { written.insert(written.end(), part.begin(), part.end()); });
  const auto read = backend_->read_snapshot(nullptr, 40, written);
  ASSERT_TRUE(read) << read.error().message();
  const auto other = state();
  backend_->restore(*other, **read);
  EXPECT_EQ(decode(*other, ids.subspan(40, 3)), want);
  EXPECT_FALSE(backend_->read_snapshot(nullptr, 40, std::span(written).first(written.size() - 1)));

  backend_->reset(*sequence);
  const auto fresh = state();
  EXPECT_EQ(prefill(*sequence, ids.first(20), 20), prefill(*fresh, ids.first(20), 20));
}

TEST_P(GpuEngineTest, SequencesThatDecodeTogetherDoNotMeet) {
  const auto ids = oracle_.input_ids();
  std::vector<std::unique_ptr<State>> together, alone;
  std::vector<float> logits(3 * vocab_);
  std::vector<DecodeItem> batch;
  for (size_t i = 0; i < 3; ++i) {
    for (auto* states : {&together, &alone}) {
      states->push_back(state());
      prefill(*states->back(), ids.subspan(i * 10, 5 + i), 64);
    }
    batch.push_back({together[i].get(), ids[50 + i], std::span(logits).subspan(i * vocab_, vocab_)});
  }
  ASSERT_TRUE(backend_->decode(batch));
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<float> want = decode(*alone[i], std::span(ids).subspan(50 + i, 1));
    const test::Difference d = test::difference(std::span(logits).subspan(i * vocab_, vocab_), want);
    EXPECT_LE(d.relative, 1e-5) << i;
  }
}

TEST_P(GpuEngineTest, TheDeviceSamplesAsTheHost) {
  const auto ids = oracle_.input_ids();
  const auto host = state(), ahead = state();
  prefill(*host, ids.first(20), 20);
  prefill(*ahead, ids.first(20), 20);
  std::vector<int32_t> want;
  int32_t token = ids[20];
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> logits = decode(*host, {&token, 1});
    token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    want.push_back(token);
  }
  std::vector<int32_t> got;
  ASSERT_TRUE(backend_->decode_ahead(*ahead, ids[20], {.tokens = static_cast<uint32_t>(vocab_)}, [&](int32_t sampled) {
    got.push_back(sampled);
    return got.size() < 6;
  }));
  EXPECT_EQ(got, want);
  // The step that ran ahead has not been.
  EXPECT_EQ(ahead->position(), host->position());
  EXPECT_EQ(decode(*ahead, {&token, 1}), decode(*host, {&token, 1}));
}

TEST_P(GpuEngineTest, AFullStateEndsTheSteps) {
  const auto sequence = backend_->make_state(8).value();
  const auto ids = oracle_.input_ids();
  prefill(*sequence, ids.first(5), 5);
  int steps = 0;
  ASSERT_TRUE(backend_->decode_ahead(*sequence, ids[5], {.tokens = 10}, [&](int32_t token) {
    EXPECT_LT(token, 10);
    return ++steps < 100;
  }));
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(sequence->position(), 8);
}

}  // namespace
}  // namespace lily
