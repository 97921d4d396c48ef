#include "backend/reference_backend.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include "backend/checks.h"
#include "base/memory_meter.h"
#include "model/reference.h"

namespace lily {
namespace {

size_t bytes_of(const ReferenceState& state) {
  size_t floats = 0;
  for (const ReferenceLayerState& layer : state.layers) {
    floats += layer.keys.size() + layer.values.size() + layer.conv.size() + layer.recurrent.size();
  }
  return floats * sizeof(float);
}

// Its share of the meter is counted anew whenever the state has grown.
struct Metered {
  explicit Metered(std::shared_ptr<MemoryMeter> to) : meter(std::move(to)) {}
  void count(const ReferenceState& state) { share.emplace(meter, bytes_of(state)); }

  std::shared_ptr<MemoryMeter> meter;
  std::optional<MeteredBytes> share;
};

class ReferenceSequence : public State {
 public:
  ReferenceSequence(const ModelConfig& config, int64_t max_tokens, const std::shared_ptr<MemoryMeter>& meter)
      : reference(config), metered_(meter) {
    max_tokens_ = max_tokens;
    sync();
  }
  void sync() {
    position_ = reference.position;
    metered_.count(reference);
  }

  ReferenceState reference;

 private:
  Metered metered_;
};

class ReferenceSnapshot : public Snapshot {
 public:
  ReferenceSnapshot(ReferenceState state, const std::shared_ptr<MemoryMeter>& meter)
      : reference(std::move(state)), metered_(meter) {
    position_ = reference.position;
    metered_.count(reference);
  }

  void write(int64_t from, const Sink& sink) const override {
    for (const ReferenceLayerState& layer : reference.layers) {
      const auto old = static_cast<size_t>(from) * (layer.keys.size() / static_cast<size_t>(position_));
      for (std::span<const float> part : {std::span(layer.keys).subspan(old), std::span(layer.values).subspan(old),
                                          std::span(layer.conv), std::span(layer.recurrent)}) {
        sink(std::as_bytes(part));
      }
    }
  }

  ReferenceState reference;

 private:
  Metered metered_;
};

class ReferenceBackend : public Backend {
 public:
  ReferenceBackend(std::shared_ptr<const Checkpoint> checkpoint, ModelWeights weights, LayerObserver observe)
      : checkpoint_(std::move(checkpoint)), weights_(std::move(weights)), observe_(std::move(observe)) {}

  const ModelConfig& config() const override { return checkpoint_->config(); }
  std::string describe() const override { return "reference (scalar float32)"; }

  Result<std::unique_ptr<State>> make_state(int64_t max_tokens) override {
    LILY_CHECK(check_capacity(config(), max_tokens));
    return std::unique_ptr<State>(std::make_unique<ReferenceSequence>(config(), max_tokens, meter_));
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
    return std::make_unique<ReferenceSnapshot>(static_cast<const ReferenceSequence&>(state).reference, meter_);
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

  Result<std::unique_ptr<Snapshot>> read_snapshot(const Snapshot* base, int64_t position,
                                                  std::span<const std::byte> data) override {
    ReferenceState state = base ? static_cast<const ReferenceSnapshot*>(base)->reference : ReferenceState(config());
    const int64_t rows = position - state.position;
    const auto read = [&data](std::vector<float>& to, size_t floats) {
      if (data.size() < floats * sizeof(float)) return false;
      const size_t old = to.size();
      to.resize(old + floats);
      std::copy_n(data.begin(), floats * sizeof(float), std::as_writable_bytes(std::span(to).subspan(old)).begin());
      data = data.subspan(floats * sizeof(float));
      return true;
    };
    bool good = rows >= 0;
    for (size_t i = 0; good && i < state.layers.size(); ++i) {
      ReferenceLayerState& layer = state.layers[i];
      const bool attends = config().layers[i] == LayerKind::full_attention;
      const auto kv = static_cast<size_t>(attends ? rows * config().kv_size() : 0);
      const size_t conv = layer.conv.size(), recurrent = layer.recurrent.size();
      layer.conv.clear();
      layer.recurrent.clear();
      good =
          read(layer.keys, kv) && read(layer.values, kv) && read(layer.conv, conv) && read(layer.recurrent, recurrent);
    }
    if (!good || !data.empty()) return Error{"snapshot", "wrong size"};
    state.position = position;
    return std::unique_ptr<Snapshot>(std::make_unique<ReferenceSnapshot>(std::move(state), meter_));
  }

  Result<Peak> measure_peak() override { return Error{.where = "reference", .what = "too slow to be measured"}; }

  StateCost state_cost() const override {
    const auto attention = std::count(config().layers.begin(), config().layers.end(), LayerKind::full_attention);
    return {.fixed = bytes_of(ReferenceState(config())),
            .per_token = static_cast<size_t>(2 * attention * config().kv_size()) * sizeof(float)};
  }
  size_t state_bytes() const override { return *meter_; }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  ModelWeights weights_;
  LayerObserver observe_;
  std::shared_ptr<MemoryMeter> meter_ = std::make_shared<MemoryMeter>(0);
};

}  // namespace

Result<std::unique_ptr<Backend>> load_reference(std::shared_ptr<const Checkpoint> checkpoint,
                                                const BackendOptions& options) {
  LILY_TRY(ModelWeights weights, bind_weights(*checkpoint));
  return std::unique_ptr<Backend>(
      std::make_unique<ReferenceBackend>(std::move(checkpoint), std::move(weights), options.observe_layer));
}

}  // namespace lily
