// A Backend without a model: its logits come from a script or from a hash of everything the state holds. It keeps the
// seam's rules (a recurrent part that cannot be rewound, KV rows that can) and records every breach of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"

namespace lily::test {

struct FakeState : State {
  explicit FakeState(int64_t capacity) { max_tokens_ = capacity; }

  void push(int32_t token) {
    rows.resize(static_cast<size_t>(position_));
    rows.push_back(token);
    recurrent = (recurrent ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u;
    recurrent ^= recurrent >> 29;
    ++position_;
  }
  void rewind(int64_t position, uint64_t value) {
    position_ = position;
    recurrent = value;
  }

  std::vector<int32_t> rows;  // KV: rows beyond the position stay until they are overwritten
  uint64_t recurrent = 0;
};

struct FakeSnapshot : Snapshot {
  explicit FakeSnapshot(const FakeState& from) : state(&from), recurrent(from.recurrent) {
    position_ = from.position();
    rows.assign(from.rows.begin(), from.rows.begin() + position_);
  }
  size_t bytes() const override { return sizeof(recurrent); }

  const FakeState* state;
  uint64_t recurrent;
  std::vector<int32_t> rows;  // only to see that the state's own were left alone
};

class FakeBackend : public Backend {
 public:
  // The next token after everything that the state holds.
  using Script = std::function<int32_t(const std::vector<int32_t>& history)>;

  explicit FakeBackend(int vocab, int64_t context = 1 << 20, Script script = {}) : script_(std::move(script)) {
    config_.model_type = "fake";
    config_.vocab_size = vocab;
    config_.max_position_embeddings = context;
  }

  const ModelConfig& config() const override { return config_; }
  ModelConfig& mutable_config() { return config_; }
  std::string describe() const override { return "fake"; }

  Result<std::unique_ptr<State>> make_state(int64_t max_tokens) override {
    return std::unique_ptr<State>(std::make_unique<FakeState>(max_tokens));
  }

  Result<void> prefill(State& state, std::span<const int32_t> tokens, WantLogits want,
                       std::span<float> logits) override {
    if (fail_next_prefill) {
      fail_next_prefill = false;
      return Error{.where = "fake", .what = "told to fail"};
    }
    auto& fake = static_cast<FakeState&>(state);
    const auto count = static_cast<int64_t>(tokens.size());
    if (fake.position() + count > fake.max_tokens()) return Error{.where = "fake", .what = "state is full"};
    for (const int32_t token : tokens) {
      if (token < 0 || token >= config_.vocab_size) return Error{.where = "fake", .what = "id outside the vocabulary"};
    }
    const auto vocab = static_cast<size_t>(config_.vocab_size);
    for (size_t i = 0; i < tokens.size(); ++i) {
      fake.push(tokens[i]);
      if (want == WantLogits::all) write_logits(fake, logits.subspan(i * vocab, vocab));
    }
    if (want == WantLogits::last) write_logits(fake, logits);
    chunks.push_back(count);
    std::this_thread::sleep_for(delay);
    return {};
  }

  Result<void> decode(std::span<DecodeItem> batch) override {
    for (DecodeItem& item : batch) {
      auto& fake = static_cast<FakeState&>(*item.state);
      if (fake.position() >= fake.max_tokens()) return Error{.where = "fake", .what = "state is full"};
      fake.push(item.token);
      write_logits(fake, item.logits);
      ++decoded;
    }
    std::this_thread::sleep_for(delay);
    return {};
  }

  std::unique_ptr<Snapshot> snapshot(const State& state) override {
    ++snapshots;
    return std::make_unique<FakeSnapshot>(static_cast<const FakeState&>(state));
  }

  void restore(State& state, const Snapshot& snapshot) override {
    ++restores;
    auto& fake = static_cast<FakeState&>(state);
    const auto& saved = static_cast<const FakeSnapshot&>(snapshot);
    if (saved.state != &fake) breaches.push_back("restored into another state");
    if (fake.rows.size() < saved.rows.size() || !std::equal(saved.rows.begin(), saved.rows.end(), fake.rows.begin())) {
      breaches.push_back("restored although the rows were overwritten");
    }
    fake.rewind(saved.position(), saved.recurrent);
  }

  void reset(State& state) override {
    ++resets;
    static_cast<FakeState&>(state).rewind(0, 0);
  }

  std::vector<int64_t> chunks;  // lengths of the prefill calls
  int decoded = 0, snapshots = 0, restores = 0, resets = 0;
  std::vector<std::string> breaches;
  bool fail_next_prefill = false;
  std::chrono::milliseconds delay{0};  // of every call

 private:
  void write_logits(const FakeState& state, std::span<float> logits) const {
    if (script_) {
      std::fill(logits.begin(), logits.end(), 0.0f);
      logits[static_cast<size_t>(script_({state.rows.begin(), state.rows.begin() + state.position()}))] = 20;
      return;
    }
    uint64_t hash = state.recurrent;
    for (int64_t i = 0; i < state.position(); ++i) {
      hash = (hash ^ static_cast<uint64_t>(state.rows[static_cast<size_t>(i)])) * 0x100000001b3u;
    }
    for (float& logit : logits) {
      hash = hash * 6364136223846793005u + 1442695040888963407u;
      logit = static_cast<float>(hash >> 40) * 0x1p-22f;
    }
  }

  ModelConfig config_;
  Script script_;
};

}  // namespace lily::test
