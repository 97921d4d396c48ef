#include "model/weights.h"

#include <cmath>
#include <optional>
#include <set>

#include "model/tensor_names.h"

namespace lily {
namespace {

// Values of tensors up to this size are looked at when a checkpoint opens; larger ones would page in gigabytes.
constexpr int64_t max_checked_elements = 1 << 16;

bool is_float(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

std::string shape_text(const std::vector<int64_t>& shape) { return Tensor{.shape = shape}.describe().substr(6); }

std::string describe(Quantization q) {
  if (q.bits == 0) return "not quantised";
  return std::to_string(q.bits) + " bits, group size " + std::to_string(q.group_size);
}

// Takes tensors out of a checkpoint by canonical name. The first error sticks and later calls give empty results, so
// that binding reads as the list of what a model has; error() is looked at once at the end.
class Binder {
 public:
  explicit Binder(const Checkpoint& checkpoint);

  const std::optional<Error>& error() const { return error_; }
  bool has(const std::string& name) const { return entries_.contains(name); }
  void fail(const std::string& name, std::string what, std::string expected, std::string got);

  // Whether norms hold w of (1 + w), as in the raw Hugging Face form; told by the layout of every conv1d.weight.
  void detect_layout();

  // Matrices [rows, cols], or [count, rows, cols] taken as one of count * rows rows.
  WeightMatrix matrix(const std::string& module, std::vector<int64_t> shape);
  WeightMatrix float_matrix(const std::string& name, std::vector<int64_t> shape);
  std::vector<float> vector(const std::string& name, std::vector<int64_t> shape);
  std::vector<float> norm(const std::string& name, int64_t size);  // 1 + w
  std::vector<float> conv(const std::string& name);

  // Every tensor that nothing took is an error, unless it belongs to a part that is skipped.
  void check_all_taken();

 private:
  struct Entry {
    const std::string* name;  // in the file
    const Tensor* tensor;
    bool taken = false;
  };

  const Tensor* take(const std::string& name);
  std::string spelling_here(const std::string& name) const;  // of a missing tensor, with this checkpoint's prefix
  void check_finite(const std::string& name, const Tensor& tensor);
  WeightMatrix quantized_matrix(const std::string& module, const std::vector<int64_t>& shape);

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  std::map<std::string, Entry> entries_;
  std::optional<Error> error_;
  bool raw_ = false;
};

Binder::Binder(const Checkpoint& checkpoint) : checkpoint_(checkpoint), config_(checkpoint.config()) {
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    const auto [entry, fresh] =
        entries_.emplace(canonical_name(name), Entry{&name, &tensor, is_skipped(part_of(name))});
    if (!fresh) fail(entry->first, "the same tensor under another prefix", "one of them", name);
  }
}

void Binder::fail(const std::string& name, std::string what, std::string expected, std::string got) {
  if (error_) return;
  const auto entry = entries_.find(name);
  const bool known = entry != entries_.end();
  const std::string place = known ? entry->second.tensor->file + ": " + *entry->second.name
                                  : checkpoint_.directory() + ": " + spelling_here(name);
  error_ = Error{place, std::move(what), std::move(expected), std::move(got)};
}

std::string Binder::spelling_here(const std::string& name) const {
  const auto layer = entries_.lower_bound("model.");
  if (layer == entries_.end() || !layer->first.starts_with("model.")) return name;
  const std::string& full = *layer->second.name;
  const std::string trunk = full.substr(0, full.size() - layer->first.size() + 6);
  if (name.starts_with("model.")) return trunk + name.substr(6);
  return trunk.starts_with("language_model.") ? "language_model." + name : name;
}

const Tensor* Binder::take(const std::string& name) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return fail(name, "tensor is missing", "", ""), nullptr;
  entry->second.taken = true;
  return error_ ? nullptr : entry->second.tensor;
}

void Binder::detect_layout() {
  std::optional<bool> raw;
  for (int i = 0; i < config_.num_layers(); ++i) {
    if (config_.layers[i] != LayerKind::linear_attention) continue;
    const std::string name = "model.layers." + std::to_string(i) + ".linear_attn.conv1d.weight";
    const Tensor* tensor = take(name);
    if (!tensor) return;
    const std::vector<int64_t> folded_shape = {config_.conv_channels(), config_.conv_kernel, 1};
    const std::vector<int64_t> raw_shape = {config_.conv_channels(), 1, config_.conv_kernel};
    if (tensor->shape != folded_shape && tensor->shape != raw_shape) {
      return fail(name, "wrong shape",
                  shape_text(folded_shape) + " (MLX) or " + shape_text(raw_shape) + " (Hugging Face)",
                  tensor->describe());
    }
    const bool this_raw = tensor->shape == raw_shape;
    if (raw && *raw != this_raw) {
      return fail(name, "conv1d layouts are mixed, so norms cannot be read", "the layout of the layers before",
                  tensor->describe());
    }
    raw = this_raw;
  }
  if (!raw)
    return fail("model.layers", "no linear_attention layer: nothing tells raw norms from folded ones", "one", "none");
  raw_ = *raw;
}

void Binder::check_finite(const std::string& name, const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const float value = load_as_float(tensor.data, tensor.dtype, i);
    if (std::isfinite(value)) continue;
    return fail(name, "not a finite number at element " + std::to_string(i), "finite values",
                std::isnan(value) ? "NaN" : "infinity");
  }
}

std::vector<float> Binder::vector(const std::string& name, std::vector<int64_t> shape) {
  const Tensor* tensor = take(name);
  if (!tensor) return {};
  if (!is_float(tensor->dtype) || tensor->shape != shape) {
    return fail(name, "wrong shape or dtype", "F32, F16 or BF16 " + shape_text(shape), tensor->describe()),
           std::vector<float>{};
  }
  check_finite(name, *tensor);
  std::vector<float> values(tensor->elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_as_float(tensor->data, tensor->dtype, i);
  return values;
}

std::vector<float> Binder::norm(const std::string& name, int64_t size) {
  std::vector<float> weight = vector(name, {size});
  if (raw_) {
    for (float& w : weight) w += 1;
  }
  return weight;
}

std::vector<float> Binder::conv(const std::string& name) {
  // One of the two inner dimensions is 1, so both layouts lie in memory as [channels, kernel].
  const int64_t channels = config_.conv_channels(), taps = config_.conv_kernel;
  const std::vector<float> stored = raw_ ? vector(name, {channels, 1, taps}) : vector(name, {channels, taps, 1});
  std::vector<float> by_tap(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) by_tap[i % taps * channels + i / taps] = stored[i];
  return by_tap;
}

WeightMatrix Binder::float_matrix(const std::string& name, std::vector<int64_t> shape) {
  const Tensor* tensor = take(name);
  if (!tensor) return {};
  if (!is_float(tensor->dtype) || tensor->shape != shape) {
    const bool packed = tensor->dtype == DType::u32;
    return fail(name, packed ? "quantised matrix without .scales" : "wrong shape or dtype",
                "F32, F16 or BF16 " + shape_text(shape), tensor->describe()),
           WeightMatrix{};
  }
  WeightMatrix matrix;
  matrix.cols = shape.back();
  matrix.rows = tensor->elements() / matrix.cols;
  matrix.dtype = tensor->dtype;
  matrix.data = tensor->data;
  return matrix;
}

WeightMatrix Binder::matrix(const std::string& module, std::vector<int64_t> shape) {
  if (has(module + ".scales")) return quantized_matrix(module, shape);
  const auto& overrides = config_.quantization.overrides;
  // Modules that quantisation left alone without an override are common; one that is named must be quantised.
  if (const auto named = overrides.find(module); named != overrides.end() && named->second.bits > 0) {
    fail(module + ".weight", "quantised by config.json but without .scales", describe(named->second), "no .scales");
  }
  return float_matrix(module + ".weight", std::move(shape));
}

WeightMatrix Binder::quantized_matrix(const std::string& module, const std::vector<int64_t>& shape) {
  const std::string name = module + ".weight";
  const Tensor* weight = take(name);
  const Tensor* scales = take(module + ".scales");
  const Tensor* biases = take(module + ".biases");
  if (!weight || !scales || !biases) return {};
  const int64_t cols = shape.back();
  const auto leading_ok = [&](const Tensor& t) {
    return t.shape.size() == shape.size() && std::equal(shape.begin(), shape.end() - 1, t.shape.begin());
  };
  const auto wrong = [&](const std::string& tensor, std::string what, std::string expected, std::string got) {
    return fail(tensor, std::move(what), std::move(expected), std::move(got)), WeightMatrix{};
  };
  if (weight->dtype != DType::u32 || !leading_ok(*weight)) {
    return wrong(name, "wrong shape or dtype", "U32, packed from " + shape_text(shape), weight->describe());
  }
  if (!is_float(scales->dtype) || !leading_ok(*scales)) {
    return wrong(module + ".scales", "wrong shape or dtype",
                 "F32, F16 or BF16, one for a group of " + shape_text(shape), scales->describe());
  }
  if (biases->dtype != scales->dtype || biases->shape != scales->shape) {
    return wrong(module + ".biases", "differs from .scales", scales->describe(), biases->describe());
  }
  const Quantization stated = config_.quantization.of(module);
  if (stated.bits > 0 && cols % stated.group_size != 0) {
    return wrong(name, "group size does not divide the columns", "a divisor of " + std::to_string(cols),
                 std::to_string(stated.group_size));
  }
  const int64_t packed_bits = 32 * weight->shape.back();
  const int64_t groups = scales->shape.back();
  const Quantization stored = {packed_bits % cols == 0 ? static_cast<int>(packed_bits / cols) : 0,
                               groups > 0 && cols % groups == 0 ? static_cast<int>(cols / groups) : 0};
  if (stored.bits == 0 || stated != stored) {
    return wrong(name, "quantisation contradicts config.json", describe(stated) + " for " + shape_text(shape),
                 stored.bits > 0 && stored.group_size > 0
                     ? describe(stored)
                     : weight->describe() + " with scales " + shape_text(scales->shape));
  }
  for (const auto& [suffix, tensor] : {std::pair(".scales", scales), std::pair(".biases", biases)}) {
    if (tensor->elements() <= max_checked_elements) check_finite(module + suffix, *tensor);
  }
  WeightMatrix matrix;
  matrix.cols = cols;
  matrix.rows = weight->elements() / weight->shape.back();
  matrix.dtype = DType::u32;
  matrix.bits = stored.bits;
  matrix.group_size = stored.group_size;
  matrix.scale_dtype = scales->dtype;
  matrix.data = weight->data;
  matrix.scales = scales->data;
  matrix.biases = biases->data;
  return matrix;
}

void Binder::check_all_taken() {
  for (const auto& [name, entry] : entries_) {
    if (!entry.taken)
      return fail(name, "unknown tensor", "only tensors of " + config_.model_type, entry.tensor->describe());
  }
}

// ---- The model, tensor by tensor

MlpWeights bind_mlp(Binder& binder, const std::string& module, int64_t size, int64_t hidden) {
  MlpWeights mlp;
  mlp.gate = binder.matrix(module + ".gate_proj", {size, hidden});
  mlp.up = binder.matrix(module + ".up_proj", {size, hidden});
  mlp.down = binder.matrix(module + ".down_proj", {hidden, size});
  return mlp;
}

void bind_experts(Binder& binder, const std::string& mlp, const ModelConfig& c, MoeWeights& moe) {
  const int64_t experts = c.num_experts, size = c.expert_size, hidden = c.hidden_size;
  if (binder.has(mlp + ".experts.gate_up_proj")) {
    const WeightMatrix both = binder.float_matrix(mlp + ".experts.gate_up_proj", {experts, 2 * size, hidden});
    moe.gate = {both, 2 * size, 0, size};
    moe.up = {both, 2 * size, size, size};
    moe.down = {binder.float_matrix(mlp + ".experts.down_proj", {experts, hidden, size}), hidden, 0, hidden};
    return;
  }
  if (const std::string single = mlp + ".experts.0.gate_proj.weight"; binder.has(single)) {
    return binder.fail(single, "one tensor an expert is not supported", "experts.gate_up_proj or switch_mlp.gate_proj",
                       "experts.0.gate_proj");
  }
  moe.gate = {binder.matrix(mlp + ".switch_mlp.gate_proj", {experts, size, hidden}), size, 0, size};
  moe.up = {binder.matrix(mlp + ".switch_mlp.up_proj", {experts, size, hidden}), size, 0, size};
  moe.down = {binder.matrix(mlp + ".switch_mlp.down_proj", {experts, hidden, size}), hidden, 0, hidden};
}

MoeWeights bind_moe(Binder& binder, const std::string& mlp, const ModelConfig& c) {
  MoeWeights moe;
  moe.router = binder.matrix(mlp + ".gate", {c.num_experts, c.hidden_size});
  bind_experts(binder, mlp, c, moe);
  moe.shared = bind_mlp(binder, mlp + ".shared_expert", c.shared_expert_size, c.hidden_size);
  moe.shared_expert_gate = binder.matrix(mlp + ".shared_expert_gate", {1, c.hidden_size});
  return moe;
}

FullAttentionWeights bind_full_attention(Binder& binder, const std::string& attention, const ModelConfig& c) {
  FullAttentionWeights full;
  full.q = binder.matrix(attention + ".q_proj", {2 * c.query_size(), c.hidden_size});
  full.k = binder.matrix(attention + ".k_proj", {c.kv_size(), c.hidden_size});
  full.v = binder.matrix(attention + ".v_proj", {c.kv_size(), c.hidden_size});
  full.o = binder.matrix(attention + ".o_proj", {c.hidden_size, c.query_size()});
  full.q_norm = binder.norm(attention + ".q_norm.weight", c.head_dim);
  full.k_norm = binder.norm(attention + ".k_norm.weight", c.head_dim);
  return full;
}

LinearAttentionWeights bind_linear_attention(Binder& binder, const std::string& attention, const ModelConfig& c) {
  LinearAttentionWeights linear;
  linear.qkv = binder.matrix(attention + ".in_proj_qkv", {c.conv_channels(), c.hidden_size});
  linear.z = binder.matrix(attention + ".in_proj_z", {c.linear_value_size(), c.hidden_size});
  linear.a = binder.matrix(attention + ".in_proj_a", {c.linear_value_heads, c.hidden_size});
  linear.b = binder.matrix(attention + ".in_proj_b", {c.linear_value_heads, c.hidden_size});
  linear.out = binder.matrix(attention + ".out_proj", {c.hidden_size, c.linear_value_size()});
  linear.conv = binder.conv(attention + ".conv1d.weight");
  linear.a_log = binder.vector(attention + ".A_log", {c.linear_value_heads});
  linear.dt_bias = binder.vector(attention + ".dt_bias", {c.linear_value_heads});
  linear.norm = binder.vector(attention + ".norm.weight", {c.linear_value_dim});
  return linear;
}

LayerWeights bind_layer(Binder& binder, int index, const ModelConfig& c) {
  const std::string path = "model.layers." + std::to_string(index);
  LayerWeights layer;
  layer.kind = c.layers[index];
  layer.input_norm = binder.norm(path + ".input_layernorm.weight", c.hidden_size);
  layer.post_attention_norm = binder.norm(path + ".post_attention_layernorm.weight", c.hidden_size);
  if (layer.kind == LayerKind::full_attention) {
    layer.full = bind_full_attention(binder, path + ".self_attn", c);
  } else {
    layer.linear = bind_linear_attention(binder, path + ".linear_attn", c);
  }
  if (c.is_moe()) {
    layer.moe = bind_moe(binder, path + ".mlp", c);
  } else {
    layer.mlp = bind_mlp(binder, path + ".mlp", c.mlp_size, c.hidden_size);
  }
  return layer;
}

}  // namespace

Result<ModelWeights> bind_weights(const Checkpoint& checkpoint) {
  const ModelConfig& c = checkpoint.config();
  Binder binder(checkpoint);
  binder.detect_layout();
  ModelWeights weights;
  weights.embed = binder.matrix("model.embed_tokens", {c.vocab_size, c.hidden_size});
  // A tied model may carry a head all the same (a copy); as elsewhere it is checked and the embedding is used.
  const bool has_head = binder.has("lm_head.weight") || !c.tie_word_embeddings;
  if (has_head) weights.head = binder.matrix("lm_head", {c.vocab_size, c.hidden_size});
  if (c.tie_word_embeddings) weights.head = weights.embed;
  weights.final_norm = binder.norm("model.norm.weight", c.hidden_size);
  for (int i = 0; i < c.num_layers() && !binder.error(); ++i) weights.layers.push_back(bind_layer(binder, i, c));
  binder.check_all_taken();
  if (binder.error()) return *binder.error();
  return weights;
}

}  // namespace lily
