// A Backend without a model: its logits come from a script or from a hash of everything the state holds. It records
// every breach of the seam's rules.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "base/memory_meter.h"

namespace lily::test {

struct FakeState : State {
  FakeState(int64_t capacity, std::shared_ptr<MemoryMeter> to) : meter(std::move(to)) {
    max_tokens_ = capacity;
    count();
  }

  void push(int32_t token) {
    rows.push_back(token);
    recurrent = (recurrent ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u;
    recurrent ^= recurrent >> 29;
    ++position_;
    count();
  }
  void become(std::vector<int32_t> tokens, uint64_t value) {
    rows = std::move(tokens);
    position_ = static_cast<int64_t>(rows.size());
    recurrent = value;
    count();
  }

  static constexpr size_t fixed_bytes = 1000, token_bytes = 10;
  void count() { share.emplace(meter, fixed_bytes + token_bytes * rows.size()); }

  std::vector<int32_t> rows;  // KV
  uint64_t recurrent = 0;
  std::shared_ptr<MemoryMeter> meter;
  std::optional<MeteredBytes> share;
};

// Shares nothing with the state, but costs only its recurrent part.
struct FakeSnapshot : Snapshot {
  FakeSnapshot(std::vector<int32_t> tokens, uint64_t value, const std::shared_ptr<MemoryMeter>& meter)
      : rows(std::move(tokens)), recurrent(value), share(meter, FakeState::fixed_bytes) {
    position_ = static_cast<int64_t>(rows.size());
  }
  void write(int64_t from, const Sink& sink) const override {
    sink(std::as_bytes(std::span(&recurrent, 1)));
    sink(std::as_bytes(std::span(rows).subspan(static_cast<size_t>(from))));
  }

  std::vector<int32_t> rows;
  uint64_t recurrent;
  MeteredBytes share;
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
    return std::unique_ptr<State>(std::make_unique<FakeState>(max_tokens, meter_));
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
    calls += 'p';
    std::this_thread::sleep_for(delay);
    return {};
  }

  Result<void> decode(std::span<DecodeItem> batch) override {
    batches.push_back(batch.size());
    calls += 'd';
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
    const auto& fake = static_cast<const FakeState&>(state);
    return std::make_unique<FakeSnapshot>(fake.rows, fake.recurrent, meter_);
  }

  void restore(State& state, const Snapshot& snapshot) override {
    ++restores;
    const auto& saved = static_cast<const FakeSnapshot&>(snapshot);
    if (saved.position() > state.max_tokens()) breaches.push_back("restored beyond the state's capacity");
    static_cast<FakeState&>(state).become(saved.rows, saved.recurrent);
  }

  void reset(State& state) override {
    ++resets;
    static_cast<FakeState&>(state).become({}, 0);
  }

  Result<std::unique_ptr<Snapshot>> read_snapshot(const Snapshot* base, int64_t position,
                                                  std::span<const std::byte> data) override {
    std::vector<int32_t> rows;
    if (base) rows = static_cast<const FakeSnapshot*>(base)->rows;
    const size_t old = rows.size();
    uint64_t recurrent = 0;
    if (position < static_cast<int64_t>(old) ||
        data.size() != sizeof(recurrent) + (static_cast<size_t>(position) - old) * sizeof(int32_t)) {
      return Error{.where = "fake", .what = "wrong size"};
    }
    rows.resize(static_cast<size_t>(position));
    std::memcpy(&recurrent, data.data(), sizeof(recurrent));
    if (rows.size() > old) std::memcpy(&rows[old], data.data() + sizeof(recurrent), (rows.size() - old) * 4);
    return std::unique_ptr<Snapshot>(std::make_unique<FakeSnapshot>(std::move(rows), recurrent, meter_));
  }

  Result<Peak> measure_peak() override { return Error{.where = "fake", .what = "no machine"}; }
  StateCost state_cost() const override { return {FakeState::fixed_bytes, FakeState::token_bytes}; }
  size_t state_bytes() const override { return *meter_; }

  std::vector<int64_t> chunks;   // lengths of the prefill calls
  std::vector<size_t> batches;   // items of the decode calls
  std::string calls;             // p: prefill, d: decode
  std::atomic<int> decoded = 0;  // tokens, for other threads to look at
  int snapshots = 0, restores = 0, resets = 0;
  std::vector<std::string> breaches;
  bool fail_next_prefill = false;
  std::chrono::microseconds delay{0};  // of every call

 private:
  void write_logits(const FakeState& state, std::span<float> logits) const {
    if (script_) {
      std::fill(logits.begin(), logits.end(), 0.0f);
      logits[static_cast<size_t>(script_(state.rows))] = 20;
      return;
    }
    uint64_t hash = state.recurrent;
    for (const int32_t row : state.rows) hash = (hash ^ static_cast<uint64_t>(row)) * 0x100000001b3u;
    for (float& logit : logits) {
      hash = hash * 6364136223846793005u + 1442695040888963407u;
      logit = static_cast<float>(hash >> 40) * 0x1p-22f;
    }
  }

  ModelConfig config_;
  Script script_;
  std::shared_ptr<MemoryMeter> meter_ = std::make_shared<MemoryMeter>(0);
};

}  // namespace lily::test
