#include "backend/gpu/gpu_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

#include "backend/checks.h"
#include "backend/gpu/devices.h"
#include "backend/gpu/gpu_state.h"
#include "backend/gpu/gpu_weights.h"
#include "backend/gpu/measure_peak.h"
#include "backend/gpu/unfused.h"

namespace lily::gpu {
namespace {

constexpr size_t max_batch = 64;        // sequences that decode together
constexpr int64_t max_logit_rows = 64;  // of a prefill that wants all logits, at a time: a megabyte each

class GpuBackend : public Backend {
 public:
  GpuBackend(std::shared_ptr<const Checkpoint> checkpoint, std::unique_ptr<Device> device, GpuWeights weights,
             std::unique_ptr<KvPool> pool, LayerObserver observe)
      : checkpoint_(std::move(checkpoint)),
        config_(checkpoint_->config()),
        device_(std::move(device)),
        weights_(std::move(weights)),
        pool_(std::move(pool)),
        observe_(std::move(observe)),
        layout_{*device_, config_, *pool_, std::make_shared<MemoryMeter>(0)},
        tuning_(default_tuning(device_->traits(), config_)),
        schedule_(config_, weights_, layout_, tuning_) {}

  const ModelConfig& config() const override { return config_; }
  std::string describe() const override { return device_->traits().name; }
  int64_t chunk() const override { return tuning_.prefill_chunk; }

  Result<std::unique_ptr<State>> make_state(int64_t max_tokens) override {
    LILY_CHECK(check_capacity(config_, max_tokens));
    LILY_TRY(std::unique_ptr<GpuState> state, GpuState::create(layout_, max_tokens));
    return std::unique_ptr<State>(std::move(state));
  }

  Result<void> prefill(State& state, std::span<const int32_t> tokens, WantLogits want,
                       std::span<float> logits) override {
    assert(logits.size() == logits_size(config_, want, tokens.size()));
    LILY_CHECK(check_tokens(config_, state, tokens));
    if (!tuning_.mechanisms.chunking && tokens.size() > schedule_.most_rows()) {
      return Error{.where = describe(), .what = "the prompt is too long for one chunk", .exit_code = 1};
    }
    LILY_CHECK(make_buffers(tokens.size()));
    auto& gpu_state = static_cast<GpuState&>(state);
    LILY_CHECK(gpu_state.reserve(static_cast<int64_t>(tokens.size())));
    for (size_t done = 0; done < tokens.size(); done += tuning_.prefill_chunk) {
      const auto chunk = tokens.subspan(done, std::min<size_t>(tuning_.prefill_chunk, tokens.size() - done));
      LILY_CHECK(forward(gpu_state, chunk));
      const auto n = static_cast<uint32_t>(chunk.size());
      if (want == WantLogits::all) {
        LILY_CHECK(all_logits(n, logits.subspan(done * config_.vocab_size, n * config_.vocab_size)));
      } else if (want == WantLogits::last && done + n == tokens.size()) {
        LILY_CHECK(head(n - 1, 1, logits));
      }
    }
    return {};
  }

  Result<void> decode(std::span<DecodeItem> batch) override {
    for (const DecodeItem& item : batch) LILY_CHECK(check_tokens(config_, *item.state, {&item.token, 1}));
    LILY_CHECK(make_buffers());
    // All of it first, so that a want of memory leaves every state as it was.
    for (const DecodeItem& item : batch) LILY_CHECK(static_cast<GpuState*>(item.state)->reserve(1));
    for (size_t done = 0; done < batch.size(); done += max_batch) {
      const auto part = batch.subspan(done, std::min(max_batch, batch.size() - done));
      LILY_CHECK(part.size() == 1 ? decode_one(part[0]) : decode_together(part));
    }
    return {};
  }

  bool samples() const override { return true; }
  Result<void> decode_ahead(State& state, int32_t token, const DeviceSampling& sampling,
                            const std::function<bool(int32_t)>& on_token) override {
    LILY_CHECK(check_tokens(config_, state, {&token, 1}));
    LILY_CHECK(make_buffers());
    auto& s = static_cast<GpuState&>(state);
    LILY_CHECK(s.reserve(1));
    LILY_CHECK(s.set_step(static_cast<uint32_t>(token)));
    if (!tuning_.mechanisms.token_handoff) return decode_behind(s, sampling, on_token);
    LILY_TRY(Flight flight, take_off(s, sampling));
    for (;;) {
      // The next step starts before anybody has seen this one's token.
      const bool room = s.position() < s.max_tokens() && s.reserve(1);
      Flight next;
      if (room) {
        LILY_TRY(next, take_off(s, sampling));
      }
      LILY_TRY(const int32_t sampled, landed(flight));
      const bool more = on_token(sampled);
      if (!more && room) s.take_back();
      if (!more || !room) return {};
      flight = next;
    }
  }

  std::unique_ptr<Snapshot> snapshot(const State& state) override {
    Result<std::unique_ptr<GpuSnapshot>> snapshot = GpuSnapshot::take(layout_, static_cast<const GpuState&>(state));
    return snapshot ? std::move(snapshot).value() : nullptr;
  }
  // A device that fails here fails in the next call, too, which says so.
  void restore(State& state, const Snapshot& snapshot) override {
    (void)static_cast<const GpuSnapshot&>(snapshot).restore_to(static_cast<GpuState&>(state));
  }
  void reset(State& state) override { (void)static_cast<GpuState&>(state).clear(); }

  Result<std::unique_ptr<Snapshot>> read_snapshot(const Snapshot* base, int64_t position,
                                                  std::span<const std::byte> data) override {
    LILY_TRY(std::unique_ptr<GpuSnapshot> snapshot,
             GpuSnapshot::read(layout_, static_cast<const GpuSnapshot*>(base), position, data));
    return std::unique_ptr<Snapshot>(std::move(snapshot));
  }

  Result<Peak> measure_peak() override { return gpu::measure_peak(*device_); }

  std::vector<Mechanism> mechanisms() const override {
    std::vector<Mechanism> all;
    for (const NamedMechanism& named : named_mechanisms()) all.push_back(named.mechanism);
    return all;
  }
  Result<void> without(const std::string& mechanism) override {
    const std::span<const NamedMechanism> all = named_mechanisms();
    const auto named =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.mechanism.name == mechanism; });
    if (!mechanism.empty() && named == all.end()) return Backend::without(mechanism);
    tuning_ = default_tuning(device_->traits(), config_);
    if (named != all.end()) tuning_.mechanisms.*named->flag = false;
    if (!tuning_.mechanisms.chunking) tuning_.prefill_chunk = static_cast<uint32_t>(config_.max_position_embeddings);
    schedule_.set_tuning(tuning_);
    ++memory_generation_;
    for (std::unique_ptr<Buffer>* buffer : {&x_, &tokens_, &memory_, &routing_}) buffer->reset();
    return {};
  }
  size_t temporary_bytes() const override { return memory_ ? memory_->bytes() : 0; }

  StateCost state_cost() const override {
    return {.fixed = layout_.bytes(), .per_token = pool_->block_bytes() / kernels::kv_block_tokens};
  }
  size_t state_bytes() const override { return *layout_.meter + pool_->bytes_in_use(); }

 private:
  static constexpr size_t token_slot_bytes = 16;

  struct Flight {  // a step that runs
    uint64_t mark = 0;
    int slot = 0;
  };

  // Buffers that every call uses; `tokens` of a prompt matter where it is not cut into chunks.
  Result<void> make_buffers(size_t tokens = 0) {
    if (!logits_) {
      LILY_TRY(slots_, device_->allocate_visible(2 * token_slot_bytes));
      LILY_TRY(logits_, device_->allocate(max_batch * config_.vocab_size * sizeof(float)));
    }
    const size_t rows = tuning_.mechanisms.chunking ? tuning_.prefill_chunk : std::max(tokens, size_t{1});
    const size_t bytes = rows * config_.hidden_size * sizeof(float);
    if (tokens_ && x_->bytes() >= bytes) return {};
    LILY_TRY(x_, device_->allocate(bytes));
    LILY_TRY(tokens_, device_->allocate(std::max(rows, max_batch) * sizeof(int32_t)));
    return {};
  }

  // The plan's list with its temporaries in memory_, which grows to hold them.
  Result<std::vector<Dispatch>> place(const Plan& plan) {
    if (!memory_ || memory_->bytes() < plan.temporary_bytes()) {
      LILY_TRY(memory_, device_->allocate(std::max<size_t>(256, plan.temporary_bytes())));
      ++memory_generation_;
    }
    return plan.dispatches(*memory_);
  }
  Result<void> run(Planner& planner) {
    const Plan plan = planner.finish();
    LILY_TRY(const std::vector<Dispatch> list, place(plan));
    return device_->submit(list);
  }

  Result<void> forward(GpuState& state, std::span<const int32_t> tokens) {
    const auto n = static_cast<uint32_t>(tokens.size());
    LILY_CHECK(device_->upload({tokens_.get(), 0, tokens.size_bytes()}, std::as_bytes(tokens)));
    LILY_CHECK(state.set_step(0));
    const Schedule::Chunk chunk{state, n, {tokens_.get(), 0, tokens.size_bytes()}, rows_of_x(n)};
    Planner planner(schedule_.plan_options());
    schedule_.embed(planner, chunk);
    for (int layer = 0; layer < config_.num_layers(); ++layer) {
      if (observe_) LILY_CHECK(observe(planner, layer, n));
      if (tuning_.mechanisms.resident_routing) {
        schedule_.prefill_layer(planner, chunk, layer);
      } else {
        LILY_CHECK(layer_by_halves(planner, chunk, layer));
      }
    }
    LILY_CHECK(run(planner));
    if (observe_) LILY_CHECK(observe_final(n));
    state.advance(n);
    return {};
  }

  // The host groups the experts' rows between the halves.
  Result<void> layer_by_halves(Planner& planner, const Schedule::Chunk& chunk, int layer) {
    size_t bytes = 0;
    const auto place = [&](size_t count) {
      const BufferView view{routing_.get(), bytes, count};
      bytes += (count + 255) / 256 * 256;
      return external(view);
    };
    Schedule::Routed routed = schedule_.routed(chunk, layer, place);
    if (!routing_ || routing_->bytes() < bytes) {
      LILY_TRY(routing_, device_->allocate(bytes));
      bytes = 0;
      routed = schedule_.routed(chunk, layer, place);
    }
    schedule_.prefill_choose(planner, chunk, layer, routed);
    LILY_CHECK(run(planner));
    LILY_CHECK(group_on_host(*device_, routed, schedule_.group_args(chunk, routed)));
    schedule_.prefill_experts(planner, chunk, layer, routed);
    return {};
  }

  BufferView rows_of_x(uint32_t n) const { return {x_.get(), 0, size_t{n} * config_.hidden_size * sizeof(float)}; }

  Result<void> observe(Planner& planner, int layer, uint32_t n) {
    LILY_CHECK(run(planner));
    std::vector<float> hidden(size_t{n} * config_.hidden_size);
    LILY_CHECK(device_->download(rows_of_x(n), std::as_writable_bytes(std::span(hidden))));
    observe_(layer, hidden);
    return {};
  }

  Result<void> observe_final(uint32_t n) {
    std::vector<uint16_t> normed(size_t{n} * config_.hidden_size);
    LILY_TRY(const std::unique_ptr<Buffer> buffer, device_->allocate(normed.size() * 2));
    Planner planner(schedule_.plan_options());
    schedule_.final_norm(planner, rows_of_x(n), n, external({buffer.get(), 0, normed.size() * 2}));
    LILY_CHECK(run(planner));
    LILY_CHECK(device_->download({buffer.get(), 0, normed.size() * 2}, std::as_writable_bytes(std::span(normed))));
    std::vector<float> hidden(normed.size());
    std::transform(normed.begin(), normed.end(), hidden.begin(), bf16_to_float);
    observe_(config_.num_layers(), hidden);
    return {};
  }

  Result<void> head(uint32_t first, uint32_t count, std::span<float> logits) {
    Planner planner(schedule_.plan_options());
    const BufferView view{logits_.get(), 0, logits.size_bytes()};
    schedule_.head(planner, rows_of_x(first + count), first, count, view);
    LILY_CHECK(run(planner));
    return device_->download(view, std::as_writable_bytes(logits));
  }

  Result<void> all_logits(uint32_t n, std::span<float> logits) {
    for (uint32_t first = 0; first < n; first += max_logit_rows) {
      const uint32_t count = std::min<uint32_t>(max_logit_rows, n - first);
      LILY_CHECK(
          head(first, count, logits.subspan(size_t{first} * config_.vocab_size, size_t{count} * config_.vocab_size)));
    }
    return {};
  }

  // The step of one sequence, kept ready for the next time; with sampling, or the logits for the host.
  Result<const Recording*> recording(GpuState& state, const DeviceSampling* sampling) {
    const int parity = state.parity();
    GpuState::Recorded& recorded = state.recorded[parity];
    const uint32_t splits = schedule_.splits(state.position() + 1);
    const std::optional<DeviceSampling> wanted = sampling ? std::optional(*sampling) : std::nullopt;
    if (recorded.list && recorded.generation == memory_generation_ && recorded.splits == splits &&
        recorded.sampling == wanted) {
      return recorded.list.get();
    }
    Planner planner(schedule_.plan_options());
    GpuState* const states[] = {&state};
    const BufferView logits{logits_.get(), 0, config_.vocab_size * sizeof(float)};
    schedule_.decode(planner, states, state.step().part(4, 4), logits);
    if (sampling) {
      schedule_.sample(planner, state, logits, {slots_.get(), parity * token_slot_bytes, 4}, *sampling);
    }
    LILY_TRY(std::vector<Dispatch> list, place(planner.finish()));
    recorded = {nullptr, memory_generation_, splits, wanted};
    LILY_TRY(recorded.list, device_->record(std::move(list)));
    return recorded.list.get();
  }

  Result<void> decode_one(const DecodeItem& item) {
    auto& state = static_cast<GpuState&>(*item.state);
    LILY_CHECK(state.set_step(static_cast<uint32_t>(item.token)));
    LILY_TRY(const Recording* step, recording(state, nullptr));
    LILY_CHECK(device_->submit(*step));
    state.advance(1);
    if (item.logits.empty()) return {};
    return device_->download({logits_.get(), 0, item.logits.size_bytes()}, std::as_writable_bytes(item.logits));
  }

  Result<Flight> take_off(GpuState& state, const DeviceSampling& sampling) {
    Flight flight{.slot = state.parity()};
    LILY_TRY(const Recording* step, recording(state, &sampling));
    LILY_CHECK(device_->submit(*step));
    LILY_TRY(flight.mark, device_->mark());
    state.advance(1);
    return flight;
  }

  Result<int32_t> landed(const Flight& flight) {
    LILY_CHECK(device_->wait_for(flight.mark));
    int32_t sampled;
    std::memcpy(&sampled, slots_->host() + flight.slot * token_slot_bytes, sizeof sampled);
    return sampled;
  }

  // decode_ahead with a host that sees every token and sends it before the next step starts.
  Result<void> decode_behind(GpuState& state, const DeviceSampling& sampling,
                             const std::function<bool(int32_t)>& on_token) {
    for (;;) {
      LILY_TRY(const Flight flight, take_off(state, sampling));
      LILY_TRY(const int32_t sampled, landed(flight));
      const bool room = state.position() < state.max_tokens();
      if (!on_token(sampled) || !room || !state.reserve(1)) return {};
      LILY_CHECK(state.set_step(static_cast<uint32_t>(sampled)));
    }
  }

  Result<void> decode_together(std::span<DecodeItem> batch) {
    const auto n = static_cast<uint32_t>(batch.size());
    std::vector<GpuState*> states;
    std::vector<int32_t> tokens;
    for (const DecodeItem& item : batch) {
      states.push_back(static_cast<GpuState*>(item.state));
      tokens.push_back(item.token);
      LILY_CHECK(states.back()->set_step(static_cast<uint32_t>(item.token)));
    }
    LILY_CHECK(device_->upload({tokens_.get(), 0, n * sizeof(int32_t)}, std::as_bytes(std::span(tokens))));
    const size_t row = config_.vocab_size * sizeof(float);
    Planner planner(schedule_.plan_options());
    schedule_.decode(planner, states, {tokens_.get(), 0, n * sizeof(int32_t)}, {logits_.get(), 0, n * row});
    LILY_CHECK(run(planner));
    for (GpuState* state : states) state->advance(1);
    for (uint32_t i = 0; i < n; ++i) {
      if (batch[i].logits.empty()) continue;
      LILY_CHECK(device_->download({logits_.get(), i * row, row}, std::as_writable_bytes(batch[i].logits)));
    }
    return {};
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  const ModelConfig& config_;
  std::unique_ptr<Device> device_;
  GpuWeights weights_;
  std::unique_ptr<KvPool> pool_;
  LayerObserver observe_;
  StateLayout layout_;
  Tuning tuning_;
  Schedule schedule_;
  std::unique_ptr<Buffer> x_;        // f32 [chunk, hidden]
  std::unique_ptr<Buffer> tokens_;   // int [chunk or batch]
  std::unique_ptr<Buffer> logits_;   // f32 [batch, vocab]
  std::unique_ptr<Buffer> slots_;    // two tokens in memory that the host sees
  std::unique_ptr<Buffer> memory_;   // of temporaries
  std::unique_ptr<Buffer> routing_;  // of Schedule::Routed, where the host groups rows
  uint64_t memory_generation_ = 0;   // recordings of an older one are void
};

// Half of what the weights leave, and not more than many long sequences would take.
size_t pool_blocks(const Device& device, const ModelConfig& config, size_t weight_bytes, size_t block_bytes) {
  const size_t left = device.traits().memory > weight_bytes ? device.traits().memory - weight_bytes : 0;
  const size_t longest = static_cast<size_t>(config.max_position_embeddings) / kernels::kv_block_tokens + 1;
  return std::clamp<size_t>(left / 2 / std::max<size_t>(1, block_bytes), 2, 16 * longest);
}

}  // namespace

Result<std::unique_ptr<Backend>> load(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                                      const BackendOptions& options) {
  const ModelConfig& config = checkpoint->config();
  LILY_CHECK(check_shapes(config));
  LILY_TRY(const ModelWeights weights, bind_weights(*checkpoint));
  LILY_TRY(std::unique_ptr<Device> device, open_device(name, false));  // the kernels' own tests are strict
  LILY_TRY(GpuWeights gpu_weights, upload_weights(*device, config, weights, options.on_upload));
  size_t bytes = 0;
  for (const std::unique_ptr<Buffer>& buffer : gpu_weights.memory) bytes += buffer->bytes();
  LILY_TRY(std::unique_ptr<KvPool> pool,
           KvPool::create(*device, config, pool_blocks(*device, config, bytes, KvPool::block_bytes(config))));
  return std::unique_ptr<Backend>(std::make_unique<GpuBackend>(
      std::move(checkpoint), std::move(device), std::move(gpu_weights), std::move(pool), options.observe_layer));
}

}  // namespace lily::gpu
