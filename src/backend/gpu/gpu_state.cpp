#include "backend/gpu/gpu_state.h"

#include <algorithm>
#include <atomic>

#include "kernels/args.h"

namespace lily::gpu {
namespace {

constexpr int64_t block_tokens = kernels::kv_block_tokens;

int64_t blocks_for(int64_t tokens) { return (tokens + block_tokens - 1) / block_tokens; }

size_t linear_layers(const ModelConfig& config) {
  return static_cast<size_t>(std::count(config.layers.begin(), config.layers.end(), LayerKind::linear_attention));
}

}  // namespace

size_t KvPool::block_bytes(const ModelConfig& config) {
  return (config.layers.size() - linear_layers(config)) * 2 * config.num_kv_heads * block_tokens * config.head_dim * 2;
}

Result<std::unique_ptr<KvPool>> KvPool::create(Device& device, const ModelConfig& config, size_t blocks) {
  auto pool = std::make_unique<KvPool>();
  pool->blocks_ = blocks;
  pool->block_bytes_ = block_bytes(config);
  LILY_TRY(pool->buffer_, device.allocate(std::max<size_t>(16, blocks * pool->block_bytes_)));
  for (size_t i = blocks; i > 0; --i) pool->free_->blocks.push_back(static_cast<uint32_t>(i - 1));
  return pool;
}

Result<KvPool::Block> KvPool::take() {
  const std::lock_guard lock(free_->mutex);
  if (free_->blocks.empty()) {
    return Error{.where = "KV cache",
                 .what = "the device has no more memory for it",
                 .expected = "at most " + std::to_string(blocks_ * block_tokens) + " tokens in all sequences",
                 .exit_code = 1};
  }
  const uint32_t block = free_->blocks.back();
  free_->blocks.pop_back();
  return Block(new uint32_t(block), [list = free_](const uint32_t* index) {
    const std::lock_guard freeing(list->mutex);
    list->blocks.push_back(*index);
    delete index;
  });
}

size_t KvPool::bytes_in_use() const {
  const std::lock_guard lock(free_->mutex);
  return (blocks_ - free_->blocks.size()) * block_bytes_;
}

size_t StateLayout::history_bytes() const {
  return size_t{kernels::conv_taps - 1} * config.conv_channels() * sizeof(float);
}

size_t StateLayout::recurrent_bytes() const {
  return size_t{kernels::linear_dim} * kernels::linear_dim * config.linear_value_heads * sizeof(float);
}

size_t StateLayout::bytes() const { return linear_layers(config) * (history_bytes() + recurrent_bytes()); }

BufferView StateLayout::history(const Buffer& memory, int index) const {
  return {&memory, index * (history_bytes() + recurrent_bytes()), history_bytes()};
}

BufferView StateLayout::recurrent(const Buffer& memory, int index) const {
  return {&memory, index * (history_bytes() + recurrent_bytes()) + history_bytes(), recurrent_bytes()};
}

Result<std::unique_ptr<GpuState>> GpuState::create(const StateLayout& layout, int64_t max_tokens) {
  std::unique_ptr<GpuState> state(new GpuState(layout));
  state->max_tokens_ = max_tokens;
  for (std::unique_ptr<Buffer>& memory : state->memory_) {
    LILY_TRY(memory, layout.device.allocate(std::max<size_t>(16, layout.bytes())));
  }
  state->table_bytes_ = (static_cast<size_t>(blocks_for(max_tokens)) * sizeof(uint32_t) + 15) / 16 * 16;
  LILY_TRY(state->table_, layout.device.allocate(16 + state->table_bytes_));
  LILY_CHECK(state->clear());
  return state;
}

Result<void> GpuState::clear() {
  position_ = 0;
  kv.clear();
  return layout_.device.fill_zero({memory_[parity_].get(), 0, memory_[parity_]->bytes()});
}

Result<void> GpuState::reserve(int64_t tokens) {
  const auto partial = static_cast<size_t>(position_ / block_tokens);  // the one that will be written next
  bool changed = false;
  if (partial < kv.size() && kv[partial].use_count() > 1) {
    LILY_TRY(KvPool::Block own, layout_.pool.take());
    LILY_CHECK(layout_.device.copy(layout_.pool.view(*kv[partial]), layout_.pool.view(*own)));
    kv[partial] = std::move(own);
    changed = true;
  }
  std::atomic_thread_fence(std::memory_order_acquire);  // another thread may just have read it and let it go
  while (static_cast<int64_t>(kv.size()) < blocks_for(position_ + tokens)) {
    LILY_TRY(KvPool::Block block, layout_.pool.take());
    kv.push_back(std::move(block));
    changed = true;
  }
  if (changed || !table_valid_) LILY_CHECK(upload_table());
  return {};
}

Result<void> GpuState::upload_table() {
  std::vector<uint32_t> table;
  for (const KvPool::Block& block : kv) table.push_back(*block);
  table_valid_ = true;
  return layout_.device.upload(blocks().part(0, table.size() * sizeof(uint32_t)), std::as_bytes(std::span(table)));
}

Result<void> GpuState::set_step(uint32_t token) {
  const kernels::SequenceStep step{static_cast<uint32_t>(position_), token};
  return layout_.device.upload(this->step().part(0, sizeof step), std::as_bytes(std::span(&step, 1)));
}

Result<std::unique_ptr<GpuSnapshot>> GpuSnapshot::take(const StateLayout& layout, const GpuState& state) {
  std::unique_ptr<GpuSnapshot> snapshot(new GpuSnapshot(layout));
  snapshot->position_ = state.position();
  snapshot->kv_.assign(state.kv.begin(), state.kv.begin() + blocks_for(state.position()));
  LILY_TRY(snapshot->memory_, layout.device.allocate(std::max<size_t>(16, layout.bytes())));
  const BufferView to{snapshot->memory_.get(), 0, snapshot->memory_->bytes()};
  LILY_CHECK(layout.device.copy({&state.before(), 0, to.bytes}, to));
  return snapshot;
}

Result<void> GpuSnapshot::restore_to(GpuState& state) const {
  state.move_to(position_);
  state.kv = kv_;
  state.table_valid_ = false;
  const BufferView from{memory_.get(), 0, memory_->bytes()};
  return layout_.device.copy(from, {&state.before(), 0, from.bytes});
}

// The recurrent part, then whole blocks from the one that holds row `from` on.
void GpuSnapshot::write(int64_t from, const Sink& sink) const {
  const auto send = [&](const BufferView& view) {
    std::vector<std::byte> data(view.bytes);
    // A device that is lost makes every later call fail; here the file gets zeros, which its hash then covers.
    if (!layout_.device.download(view, data)) std::fill(data.begin(), data.end(), std::byte{0});
    sink(data);
  };
  send({memory_.get(), 0, layout_.bytes()});
  for (auto block = static_cast<size_t>(from / block_tokens); block < kv_.size(); ++block) {
    send(layout_.pool.view(*kv_[block]));
  }
}

Result<std::unique_ptr<GpuSnapshot>> GpuSnapshot::read(const StateLayout& layout, const GpuSnapshot* base,
                                                       int64_t position, std::span<const std::byte> data) {
  const int64_t from = base ? base->position() : 0, first = from / block_tokens, end = blocks_for(position);
  const size_t wanted =
      position < from ? 0 : layout.bytes() + layout.pool.block_bytes() * static_cast<size_t>(end - first);
  if (position < from || data.size() != wanted) {
    return Error{"snapshot", "wrong size", std::to_string(wanted) + " bytes", std::to_string(data.size())};
  }
  std::unique_ptr<GpuSnapshot> snapshot(new GpuSnapshot(layout));
  snapshot->position_ = position;
  LILY_TRY(snapshot->memory_, layout.device.allocate(std::max<size_t>(16, layout.bytes())));
  LILY_CHECK(layout.device.upload({snapshot->memory_.get(), 0, layout.bytes()}, data.first(layout.bytes())));
  data = data.subspan(layout.bytes());
  if (base) snapshot->kv_.assign(base->kv_.begin(), base->kv_.begin() + first);
  for (int64_t i = first; i < end; ++i) {
    LILY_TRY(KvPool::Block block, layout.pool.take());
    LILY_CHECK(layout.device.upload(layout.pool.view(*block), data.first(layout.pool.block_bytes())));
    data = data.subspan(layout.pool.block_bytes());
    snapshot->kv_.push_back(std::move(block));
  }
  return snapshot;
}

}  // namespace lily::gpu
