#include "backend/reference_backend.h"

#include <algorithm>
#include <cassert>

#include "backend/checks.h"
#include "model/reference.h"

namespace lily {
namespace {

class ReferenceSequence : public State {
 public:
  ReferenceSequence(const ModelConfig& config, int64_t max_tokens) : reference(config) { max_tokens_ = max_tokens; }
  void sync() { position_ = reference.position; }

  ReferenceState reference;
};

class ReferenceSnapshot : public Snapshot {
 public:
  explicit ReferenceSnapshot(const ReferenceState& state) : reference(state) { position_ = state.position; }
  size_t bytes() const override {
    size_t floats = 0;
    for (const ReferenceLayerState& layer : reference.layers) {
      floats += layer.keys.size() + layer.values.size() + layer.conv.size() + layer.recurrent.size();
    }
    return floats * sizeof(float);
  }

  ReferenceState reference;
};

class ReferenceBackend : public Backend {
 public:
  ReferenceBackend(std::shared_ptr<const Checkpoint> checkpoint, ModelWeights weights, LayerObserver observe)
      : checkpoint_(std::move(checkpoint)), weights_(std::move(weights)), observe_(std::move(observe)) {}

  const ModelConfig& config() const override { return checkpoint_->config(); }
  std::string describe() const override { return "reference (scalar float32)"; }

  Result<std::unique_ptr<State>> make_state(int64_t max_tokens) override {
    LILY_CHECK(check_capacity(config(), max_tokens));
    return std::unique_ptr<State>(std::make_unique<ReferenceSequence>(config(), max_tokens));
  }

  Result<void> prefill(State& state, std::span<const int32_t> tokens, WantLogits want,
                       std::span<float> logits) override {
    assert(logits.size() == logits_size(config(), want, tokens.size()));
    LILY_CHECK(check_tokens(config(), state, tokens));
    auto& own = static_cast<ReferenceSequence&>(state);
    const std::vector<float> hidden = reference_forward(config(), weights_, own.reference, tokens, observe_);
    own.sync();
    if (want == WantLogits::none || tokens.empty()) return {};
    const size_t rows = want == WantLogits::all ? tokens.size() : 1;
    const auto wanted = std::span(hidden).last(rows * config().hidden_size);
    std::ranges::copy(reference_logits(weights_, wanted), logits.begin());
    return {};
  }

  Result<void> decode(std::span<DecodeItem> batch) override {
    for (const DecodeItem& item : batch) LILY_CHECK(check_tokens(config(), *item.state, {&item.token, 1}));
    for (const DecodeItem& item : batch) {
      LILY_CHECK(prefill(*item.state, {&item.token, 1}, WantLogits::last, item.logits));
    }
    return {};
  }

  std::unique_ptr<Snapshot> snapshot(const State& state) override {
    return std::make_unique<ReferenceSnapshot>(static_cast<const ReferenceSequence&>(state).reference);
  }
  void restore(State& state, const Snapshot& snapshot) override {
    auto& own = static_cast<ReferenceSequence&>(state);
    own.reference = static_cast<const ReferenceSnapshot&>(snapshot).reference;
    own.sync();
  }
  void reset(State& state) override {
    auto& own = static_cast<ReferenceSequence&>(state);
    own.reference = ReferenceState(config());
    own.sync();
  }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  ModelWeights weights_;
  LayerObserver observe_;
};

}  // namespace

Result<std::unique_ptr<Backend>> load_reference(std::shared_ptr<const Checkpoint> checkpoint,
                                                const BackendOptions& options) {
  LILY_TRY(ModelWeights weights, bind_weights(*checkpoint));
  return std::unique_ptr<Backend>(
      std::make_unique<ReferenceBackend>(std::move(checkpoint), std::move(weights), options.observe_layer));
}

}  // namespace lily
