#include "backend/gpu/plan_report.h"

#include "backend/gpu/gpu_state.h"
#include "backend/gpu/gpu_weights.h"
#include "backend/gpu/schedule.h"
#include "backend/gpu/tuning.h"
#include "kernels/catalog.h"
#include "model/checkpoint.h"

namespace lily::gpu {
namespace {

struct NoMemory : Buffer {
  explicit NoMemory(size_t bytes) : Buffer(bytes) {}
};

// Gives buffers without memory and runs nothing.
class PaperDevice : public Device {
 public:
  explicit PaperDevice(DeviceTraits traits) : traits_(std::move(traits)) {}

  const DeviceTraits& traits() const override { return traits_; }
  Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override {
    return std::unique_ptr<Buffer>(std::make_unique<NoMemory>(bytes));
  }
  Result<std::unique_ptr<Buffer>> allocate_visible(size_t bytes) override { return allocate(bytes); }
  Result<void> upload(const BufferView&, std::span<const std::byte>) override { return {}; }
  Result<void> download(const BufferView&, std::span<std::byte>) override { return {}; }
  Result<void> copy(const BufferView&, const BufferView&) override { return {}; }
  Result<void> fill_zero(const BufferView&) override { return {}; }
  Result<std::unique_ptr<Recording>> record(std::vector<Dispatch>) override { return std::make_unique<Recording>(); }
  Result<void> submit(const Recording&) override { return {}; }
  Result<void> submit(std::span<const Dispatch>) override { return {}; }
  Result<void> wait() override { return {}; }
  Result<uint64_t> mark() override { return uint64_t{0}; }
  Result<void> wait_for(uint64_t) override { return {}; }

 private:
  DeviceTraits traits_;
};

// Devices as their tuning sees them: an H200, an M5 Max.
Result<DeviceTraits> traits_of(const std::string& device) {
  if (device == "cuda") return DeviceTraits{.name = device, .cores = 132, .unified_memory = false};
  if (device == "metal") return DeviceTraits{.name = device, .cores = 40, .unified_memory = true};
  if (device == "emulator") return DeviceTraits{.name = device, .cores = 1, .unified_memory = true};
  return Error{.where = "--backend", .what = "has no plan", .expected = "cuda, metal or emulator", .got = device};
}

using Fill = std::function<Result<void>(Planner&, const Schedule&, GpuState&, Device&)>;

Result<PlanReport> report(const ModelConfig& config, const std::string& device_name, int64_t tokens,
                          const Mechanisms& mechanisms, const Fill& fill) {
  LILY_CHECK(check_shapes(config));
  LILY_TRY(const DeviceTraits traits, traits_of(device_name));
  PaperDevice device(traits);
  LILY_TRY(const Checkpoint checkpoint, Checkpoint::blank(config));
  LILY_TRY(const ModelWeights weights, bind_weights(checkpoint));
  LILY_TRY(const GpuWeights gpu_weights, upload_weights(device, config, weights));
  LILY_TRY(const std::unique_ptr<KvPool> pool, KvPool::create(device, config, tokens / kernels::kv_block_tokens + 2));
  const StateLayout layout{device, config, *pool, std::make_shared<MemoryMeter>(0)};
  LILY_TRY(const std::unique_ptr<GpuState> state, GpuState::create(layout, tokens + 1));
  Tuning tuning = default_tuning(traits, config);
  tuning.mechanisms = mechanisms;
  const Schedule schedule(config, gpu_weights, layout, tuning);
  Planner planner(schedule.plan_options());
  LILY_CHECK(fill(planner, schedule, *state, device));
  const Plan plan = planner.finish();
  PlanReport report{plan.kernels(), plan.stages(), plan.intermediate_bytes(), plan.temporary_bytes(), {}};
  for (const Plan::Operation& operation : plan.operations()) {
    ++report.by_kernel[std::string(kernels::catalog()[operation.dispatch.kernel].name)];
  }
  return report;
}

}  // namespace

Result<PlanReport> report_decode(const ModelConfig& config, const std::string& device, int64_t depth,
                                 const Mechanisms& mechanisms) {
  const auto vocab = static_cast<uint32_t>(config.vocab_size);
  return report(config, device, depth, mechanisms,
                [&](Planner& planner, const Schedule& schedule, GpuState& state, Device& on) -> Result<void> {
                  state.move_to(depth);
                  GpuState* const states[] = {&state};
                  LILY_TRY(const std::unique_ptr<Buffer> logits, on.allocate(size_t{vocab} * 4));
                  LILY_TRY(const std::unique_ptr<Buffer> token, on.allocate(16));
                  const BufferView row{logits.get(), 0, logits->bytes()};
                  schedule.decode(planner, states, state.step().part(4, 4), row);
                  schedule.sample(planner, state, row, {token.get(), 0, 4}, {.tokens = vocab});
                  return {};
                });
}

Result<PlanReport> report_prefill(const ModelConfig& config, const std::string& device, int64_t tokens,
                                  const Mechanisms& mechanisms) {
  return report(config, device, tokens, mechanisms,
                [&](Planner& planner, const Schedule& schedule, GpuState& state, Device& on) -> Result<void> {
                  const auto n = static_cast<uint32_t>(tokens);
                  LILY_TRY(const std::unique_ptr<Buffer> ids, on.allocate(n * sizeof(int32_t)));
                  LILY_TRY(const std::unique_ptr<Buffer> x, on.allocate(size_t{n} * config.hidden_size * 4));
                  LILY_TRY(const std::unique_ptr<Buffer> logits, on.allocate(size_t(config.vocab_size) * 4));
                  const BufferView rows{x.get(), 0, x->bytes()};
                  const Schedule::Chunk chunk{state, n, {ids.get(), 0, ids->bytes()}, rows};
                  schedule.embed(planner, chunk);
                  for (int layer = 0; layer < config.num_layers(); ++layer)
                    schedule.prefill_layer(planner, chunk, layer);
                  schedule.head(planner, rows, n - 1, 1, {logits.get(), 0, logits->bytes()});
                  return {};
                });
}

}  // namespace lily::gpu
