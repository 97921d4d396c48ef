#include "backend/gpu/gpu_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/gpu/matrix_pieces.h"
#include "kernels/args.h"

namespace lily::gpu {
namespace {

// Everything that a buffer is to hold, placed first and then uploaded.
class Slab {
 public:
  BufferView floats(std::vector<float> values) {
    const size_t bytes = values.size() * sizeof(float);
    Item item{.to = {nullptr, end_, bytes}};
    item.own.resize(bytes);
    std::memcpy(item.own.data(), values.data(), bytes);
    return add(std::move(item));
  }

  GpuMatrix matrix(const std::vector<MatrixPiece>& pieces) {
    const MatrixForm form = common_form(pieces);
    GpuMatrix m{form.rows, form.cols, form.bits, form.group_size, {}, {}, {}};
    m.codes = place(form.codes_bytes());
    m.scales = place(form.scales_bytes());
    m.biases = place(form.scales_bytes());
    matrices_.push_back({form, pieces, m});
    return m;
  }

  size_t bytes() const { return end_; }

  // Views made before get their buffer by `bind`.
  Result<std::unique_ptr<Buffer>> upload(Device& device, const std::function<void(size_t)>& progress) {
    LILY_TRY(std::unique_ptr<Buffer> buffer, device.allocate(std::max<size_t>(end_, 16)));
    for (const Item& item : items_) LILY_CHECK(device.upload({buffer.get(), item.to.offset, item.to.bytes}, item.own));
    for (const Matrix& matrix : matrices_) {
      const auto put = [&](const BufferView& view, size_t first, std::span<const std::byte> data) -> Result<void> {
        progress(data.size());
        return device.upload({buffer.get(), view.offset + first, data.size()}, data);
      };
      LILY_CHECK(write_pieces(
          matrix.form, matrix.pieces,
          [&](size_t first, std::span<const std::byte> data) { return put(matrix.to.codes, first, data); },
          [&](size_t first, std::span<const std::byte> data) { return put(matrix.to.scales, first, data); },
          [&](size_t first, std::span<const std::byte> data) { return put(matrix.to.biases, first, data); }));
    }
    return buffer;
  }

 private:
  struct Item {
    BufferView to;
    std::vector<std::byte> own;
  };
  struct Matrix {
    MatrixForm form;
    std::vector<MatrixPiece> pieces;
    GpuMatrix to;
  };

  BufferView place(size_t bytes) {
    const BufferView view{nullptr, end_, std::max<size_t>(bytes, 16)};
    end_ += (view.bytes + 255) / 256 * 256;
    return view;
  }
  BufferView add(Item item) {
    item.to = place(item.to.bytes);
    items_.push_back(std::move(item));
    return items_.back().to;
  }

  size_t end_ = 0;
  std::vector<Item> items_;
  std::vector<Matrix> matrices_;
};

void bind(GpuMatrix& m, const Buffer* buffer) { m.codes.buffer = m.scales.buffer = m.biases.buffer = buffer; }

void bind(GpuLayer& layer, const Buffer* buffer) {
  for (BufferView* view : {&layer.input_norm, &layer.post_attention_norm, &layer.conv, &layer.a_log, &layer.dt_bias,
                           &layer.norm, &layer.q_norm, &layer.k_norm}) {
    view->buffer = buffer;
  }
  for (GpuMatrix* m : {&layer.in, &layer.out, &layer.router, &layer.gate, &layer.up, &layer.down}) bind(*m, buffer);
}

// Rows of all routed experts, in one piece where the file has them so.
void add_experts(const ExpertMatrices& experts, int count, std::vector<MatrixPiece>& pieces) {
  if (experts.stride == experts.rows) {
    pieces.push_back(whole(experts.all));
  } else {
    for (int e = 0; e < count; ++e) pieces.push_back(whole(experts[e]));
  }
}

void place_feed_forward(const ModelConfig& config, const LayerWeights& w, uint32_t parts, uint32_t width, Slab& slab,
                        GpuLayer& layer) {
  std::vector<MatrixPiece> gate, up, down;
  if (config.is_moe()) {
    layer.router = slab.matrix({whole(w.moe.router), whole(w.moe.shared_expert_gate)});
    add_experts(w.moe.gate, config.num_experts, gate);
    add_experts(w.moe.up, config.num_experts, up);
    add_experts(w.moe.down, config.num_experts, down);
  }
  const MlpWeights& shared = config.is_moe() ? w.moe.shared : w.mlp;
  gate.push_back(whole(shared.gate));
  up.push_back(whole(shared.up));
  for (uint32_t p = 0; p < parts; ++p) down.push_back({shared.down, int64_t{p} * width, width});
  layer.gate = slab.matrix(gate);
  layer.up = slab.matrix(up);
  layer.down = slab.matrix(down);
}

GpuLayer place_layer(const ModelConfig& config, const LayerWeights& w, uint32_t parts, uint32_t width, Slab& slab) {
  GpuLayer layer;
  layer.input_norm = slab.floats(w.input_norm);
  layer.post_attention_norm = slab.floats(w.post_attention_norm);
  if (w.kind == LayerKind::full_attention) {
    layer.in = slab.matrix({whole(w.full.q), whole(w.full.k), whole(w.full.v)});
    layer.out = slab.matrix({whole(w.full.o)});
    layer.q_norm = slab.floats(w.full.q_norm);
    layer.k_norm = slab.floats(w.full.k_norm);
  } else {
    layer.in = slab.matrix({whole(w.linear.qkv), whole(w.linear.z), whole(w.linear.b), whole(w.linear.a)});
    layer.out = slab.matrix({whole(w.linear.out)});
    layer.conv = slab.floats(w.linear.conv);
    layer.a_log = slab.floats(w.linear.a_log);
    layer.dt_bias = slab.floats(w.linear.dt_bias);
    layer.norm = slab.floats(w.linear.norm);
  }
  place_feed_forward(config, w, parts, width, slab, layer);
  return layer;
}

// Angles of p and of rope_low * p: any position's angle is the sum of two of them.
std::vector<float> rope_table(const ModelConfig& config) {
  const int half = config.rotary_dim / 2;
  std::vector<float> table;
  for (const double unit : {1.0, double{kernels::rope_low}}) {
    for (uint32_t p = 0; p < kernels::rope_low; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * unit * std::pow(config.rope_theta, -2.0 * i / config.rotary_dim);
        table.push_back(static_cast<float>(std::cos(angle)));
        table.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  return table;
}

Error unsupported(const char* what, int64_t expected, int64_t got) {
  return {.where = "GPU backend", .what = what, .expected = std::to_string(expected), .got = std::to_string(got)};
}

}  // namespace

Result<void> check_shapes(const ModelConfig& c) {
  using kernels::linear_dim;
  if (c.head_dim != kernels::head_dim) return unsupported("head_dim", kernels::head_dim, c.head_dim);
  if (c.linear_key_dim != linear_dim) return unsupported("linear_key_head_dim", linear_dim, c.linear_key_dim);
  if (c.linear_value_dim != linear_dim) return unsupported("linear_value_head_dim", linear_dim, c.linear_value_dim);
  if (c.conv_kernel != kernels::conv_taps)
    return unsupported("linear_conv_kernel_dim", kernels::conv_taps, c.conv_kernel);
  if (c.num_heads / c.num_kv_heads > 16)
    return unsupported("heads a KV head, at most", 16, c.num_heads / c.num_kv_heads);
  if (c.hidden_size % 64 != 0) return unsupported("hidden_size modulo 64", 0, c.hidden_size % 64);
  if (!c.is_moe()) return {};
  const int slots = c.experts_per_token + c.shared_expert_size / c.expert_size;
  if (c.num_experts > static_cast<int>(kernels::max_experts))
    return unsupported("experts, at most", kernels::max_experts, c.num_experts);
  if (c.shared_expert_size % c.expert_size != 0)
    return unsupported("shared expert's width modulo an expert's", 0, c.shared_expert_size % c.expert_size);
  if (slots > static_cast<int>(kernels::max_slots))
    return unsupported("experts of a token, at most", kernels::max_slots, slots);
  if (c.expert_size % 32 != 0) return unsupported("moe_intermediate_size modulo 32", 0, c.expert_size % 32);
  return {};
}

Result<GpuWeights> upload_weights(Device& device, const ModelConfig& config, const ModelWeights& weights,
                                  const UploadProgress& progress) {
  GpuWeights gpu;
  gpu.width = static_cast<uint32_t>(config.is_moe() ? config.expert_size : config.mlp_size);
  gpu.shared_parts = config.is_moe() ? static_cast<uint32_t>(config.shared_expert_size) / gpu.width : 1;

  std::vector<Slab> slabs(1 + config.layers.size());
  const bool tied = weights.head.data == weights.embed.data;
  gpu.embed = slabs[0].matrix({whole(weights.embed)});
  if (!tied) gpu.head = slabs[0].matrix({whole(weights.head)});
  gpu.final_norm = slabs[0].floats(weights.final_norm);
  gpu.rope = slabs[0].floats(rope_table(config));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    gpu.layers.push_back(place_layer(config, weights.layers[i], gpu.shared_parts, gpu.width, slabs[i + 1]));
  }

  size_t total = 0, done = 0;
  for (const Slab& slab : slabs) total += slab.bytes();
  for (Slab& slab : slabs) {
    LILY_TRY(std::unique_ptr<Buffer> buffer, slab.upload(device, [&](size_t bytes) {
      done += bytes;
      if (progress) progress(std::min(done, total), total);
    }));
    gpu.memory.push_back(std::move(buffer));
  }
  bind(gpu.embed, gpu.memory[0].get());
  bind(gpu.head, gpu.memory[0].get());
  if (tied) gpu.head = gpu.embed;
  gpu.final_norm.buffer = gpu.rope.buffer = gpu.memory[0].get();
  for (size_t i = 0; i < gpu.layers.size(); ++i) bind(gpu.layers[i], gpu.memory[i + 1].get());
  if (progress) progress(total, total);
  return gpu;
}

}  // namespace lily::gpu
