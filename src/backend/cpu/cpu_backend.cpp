#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "backend/checks.h"
#include "backend/cpu/layers.h"
#include "backend/cpu/machine_peak.h"
#include "backend/cpu/state.h"

namespace lily::cpu {
namespace {

// Tokens computed together: enough for every expert to get several, few enough to bound the activations' memory.
constexpr int64_t max_chunk = 1024;
// Sequences that decode together: their logits are a megabyte each.
constexpr size_t max_batch = 64;

class CpuBackend : public Backend {
 public:
  CpuBackend(std::shared_ptr<const Checkpoint> checkpoint, ModelWeights weights, const Kernels& kernels,
             const BackendOptions& options)
      : checkpoint_(std::move(checkpoint)),
        config_(checkpoint_->config()),
        weights_(std::move(weights)),
        compute_(kernels, options.threads, options.exact),
        observe_(options.observe_layer),
        layout_{config_, options.exact ? DType::f32 : DType::bf16, std::make_shared<MemoryMeter>(0)},
        full_attention_(layout_.kv_dtype) {}

  const ModelConfig& config() const override { return config_; }
  std::string describe() const override {
    return fmt::format("cpu ({}, {} thread{})", compute_.kernels().isa, compute_.threads(),
                       compute_.threads() == 1 ? "" : "s");
  }

  Result<std::unique_ptr<State>> make_state(int64_t max_tokens) override {
    LILY_CHECK(check_capacity(config_, max_tokens));
    return std::unique_ptr<State>(std::make_unique<CpuState>(layout_, max_tokens));
  }

  Result<void> prefill(State& state, std::span<const int32_t> tokens, WantLogits want,
                       std::span<float> logits) override {
    assert(logits.size() == logits_size(config_, want, tokens.size()));
    LILY_CHECK(check_tokens(config_, state, tokens));
    for (size_t done = 0; done < tokens.size(); done += max_chunk) {
      const auto chunk = tokens.subspan(done, std::min<size_t>(max_chunk, tokens.size() - done));
      const bool last = done + chunk.size() == tokens.size();
      const Run run = {static_cast<CpuState*>(&state), 0, static_cast<int64_t>(chunk.size())};
      forward({&run, 1}, chunk);
      if (want == WantLogits::all) {
        head(0, static_cast<int64_t>(chunk.size()), logits.data() + done * config_.vocab_size);
      } else if (want == WantLogits::last && last) {
        head(static_cast<int64_t>(chunk.size()) - 1, 1, logits.data());
      }
    }
    return {};
  }

  Result<void> decode(std::span<DecodeItem> batch) override {
    for (const DecodeItem& item : batch) LILY_CHECK(check_tokens(config_, *item.state, {&item.token, 1}));
    for (size_t done = 0; done < batch.size(); done += max_batch) {
      decode_together(batch.subspan(done, std::min<size_t>(max_batch, batch.size() - done)));
    }
    return {};
  }

  std::unique_ptr<Snapshot> snapshot(const State& state) override {
    return std::make_unique<CpuSnapshot>(layout_, static_cast<const CpuState&>(state));
  }
  void restore(State& state, const Snapshot& snapshot) override {
    static_cast<const CpuSnapshot&>(snapshot).restore_to(static_cast<CpuState&>(state));
  }
  void reset(State& state) override { static_cast<CpuState&>(state).clear(); }

  Result<std::unique_ptr<Snapshot>> read_snapshot(const Snapshot* base, int64_t position,
                                                  std::span<const std::byte> data) override {
    LILY_TRY(std::unique_ptr<CpuSnapshot> snapshot,
             CpuSnapshot::read(layout_, static_cast<const CpuSnapshot*>(base), position, data));
    return std::unique_ptr<Snapshot>(std::move(snapshot));
  }

  Result<Peak> measure_peak() override {
    LILY_TRY(const MachinePeak peak, measure_machine_peak(compute_.threads()));
    return Peak{peak.read_bytes_per_second, peak.fma_flops_per_second,
                fmt::format("float32 FMA ({}, {} thread{})", peak.isa, peak.threads, peak.threads == 1 ? "" : "s")};
  }

  StateCost state_cost() const override {
    const auto attention = std::count(config_.layers.begin(), config_.layers.end(), LayerKind::full_attention);
    return {.fixed = layout_.recurrent_bytes(),
            .per_token = layout_.block_bytes() * static_cast<size_t>(attention) / KvBlock::tokens};
  }
  size_t state_bytes() const override { return *layout_.meter; }

 private:
  void decode_together(std::span<DecodeItem> batch) {
    const auto n = static_cast<int64_t>(batch.size());
    std::vector<Run> runs;
    std::vector<int32_t> tokens;
    for (const DecodeItem& item : batch) {
      runs.push_back({static_cast<CpuState*>(item.state), static_cast<int64_t>(runs.size()), 1});
      tokens.push_back(item.token);
    }
    forward(runs, tokens);
    if (n == 1) return head(0, 1, batch[0].logits.data());
    batch_logits_.resize(n * config_.vocab_size);
    head(0, n, batch_logits_.data());
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(&batch_logits_[i * config_.vocab_size], config_.vocab_size, batch[i].logits.begin());
    }
  }

  // Appends a chunk; the residual stream stays in x_.
  void forward(Runs runs, std::span<const int32_t> tokens) {
    const auto n = static_cast<int64_t>(tokens.size());
    x_.resize(n, config_.hidden_size);
    compute_.parallel_for(n, n * config_.hidden_size,
                          [&](int64_t t, int) { compute_.dequantize_row(weights_.embed, tokens[t], x_.row(t)); });
    for (const Run& run : runs) run.state->reserve(run.tokens);
    rope_.fill(config_, runs);
    for (int i = 0; i < config_.num_layers(); ++i) {
      const LayerWeights& layer = weights_.layers[i];
      if (observe_) observe_(i, {x_.data.data(), static_cast<size_t>(n * config_.hidden_size)});
      normalize(layer.input_norm, 0, n);
      if (layer.kind == LayerKind::full_attention) {
        full_attention_.run(compute_, config_, layer.full, normed_, rope_, runs, i, x_.data.data());
      } else {
        linear_attention_.run(compute_, config_, layer.linear, normed_, runs, i, x_.data.data());
      }
      normalize(layer.post_attention_norm, 0, n);
      feed_forward_.run(compute_, config_, layer, normed_, x_.data.data());
    }
    if (observe_) {
      normalize(weights_.final_norm, 0, n);
      observe_(config_.num_layers(), {normed_.data.data(), static_cast<size_t>(n * config_.hidden_size)});
    }
    for (const Run& run : runs) run.state->advance(run.tokens);
  }

  // normed_ = rms_norm(x_) * weight for rows [first, first + n).
  void normalize(const std::vector<float>& weight, int64_t first, int64_t n) {
    normed_.resize(n, config_.hidden_size);
    compute_.parallel_for(n, 2 * n * config_.hidden_size, [&](int64_t t, int) {
      compute_.kernels().rms_norm(x_.row(first + t), weight.data(), config_.rms_norm_eps, config_.hidden_size,
                                  normed_.row(t));
    });
    compute_.prepare(normed_, n);
  }

  // Logits [n, vocab] of rows [first, first + n) of the last chunk.
  void head(int64_t first, int64_t n, float* logits) {
    normalize(weights_.final_norm, first, n);
    const Product products[] = {{&weights_.head, logits, config_.vocab_size}};
    compute_.multiply(products, normed_);
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  const ModelConfig& config_;
  ModelWeights weights_;
  Compute compute_;
  LayerObserver observe_;
  StateLayout layout_;
  std::vector<float> batch_logits_;  // [items, vocab]
  Activations x_;                    // [tokens, hidden]: the residual stream
  Activations normed_;               // [tokens, hidden]
  RopeTable rope_;
  FullAttention full_attention_;
  LinearAttention linear_attention_;
  FeedForward feed_forward_;
};

}  // namespace

Result<std::unique_ptr<Backend>> load(std::shared_ptr<const Checkpoint> checkpoint, const BackendOptions& options) {
  const Kernels* kernels = select_kernels(options.isa.c_str());
  if (!kernels) {
    return Error{.where = "instruction set",
                 .what = "this machine cannot run it",
                 .expected = "one of amx, avx512, avx2, neon, portable that the machine has",
                 .got = options.isa};
  }
  LILY_TRY(ModelWeights weights, bind_weights(*checkpoint));
  return std::unique_ptr<Backend>(
      std::make_unique<CpuBackend>(std::move(checkpoint), std::move(weights), *kernels, options));
}

}  // namespace lily::cpu
