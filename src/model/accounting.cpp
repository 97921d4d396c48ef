#include "model/accounting.h"

#include <algorithm>

namespace lily {
namespace {

// What one token uses of a part: all, one row of the table, or its share of the experts.
int64_t used_by_token(TensorPart part, int64_t amount, const ModelConfig& config) {
  if (is_skipped(part) || part == TensorPart::unknown) return 0;
  if (part == TensorPart::embedding) return amount / config.vocab_size;
  if (part == TensorPart::experts) return amount / config.num_experts * config.experts_per_token;
  return amount;
}

PartSize size_of_tensor(const TensorSpec& tensor, const ModelConfig& config) {
  PartSize size{.tensors = 1, .parameters = tensor.elements(), .bytes = tensor.bytes()};
  if (tensor.name.ends_with(".scales") || tensor.name.ends_with(".biases")) size.parameters = 0;
  if (tensor.dtype == DType::u32 && tensor.name.ends_with(".weight")) {
    const int bits = config.quantization.of(std::string_view(tensor.name).substr(0, tensor.name.rfind('.'))).bits;
    if (bits > 0) size.parameters = size.parameters * 32 / bits;
  }
  return size;
}

}  // namespace

double PartSize::bits_per_parameter() const {
  return parameters > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(parameters) : 0;
}

PartSize& PartSize::operator+=(const PartSize& other) {
  tensors += other.tensors;
  parameters += other.parameters;
  bytes += other.bytes;
  return *this;
}

PartSizes sizes_by_part(std::span<const TensorSpec> tensors, const ModelConfig& config) {
  PartSizes sizes;
  for (const TensorSpec& tensor : tensors) sizes[part_of(tensor.name)] += size_of_tensor(tensor, config);
  return sizes;
}

PartSizes sizes_by_part(const TensorMap& tensors, const ModelConfig& config) {
  PartSizes sizes;
  for (const auto& [name, tensor] : tensors) {
    PartSize size = size_of_tensor({name, tensor.dtype, tensor.shape}, config);
    size.bytes = static_cast<int64_t>(tensor.bytes);  // DType::other does not tell the width
    sizes[part_of(name)] += size;
  }
  return sizes;
}

TokenCost token_cost(const PartSizes& sizes, const ModelConfig& c) {
  TokenCost cost;
  for (const auto& [part, size] : sizes) {
    cost.weight_bytes[part] = used_by_token(part, size.bytes, c);
    if (part == TensorPart::embedding || part == TensorPart::norm) continue;
    cost.matrix_flops += 2 * used_by_token(part, size.parameters, c);
  }
  const int64_t vocabulary = int64_t{c.vocab_size} * c.hidden_size;
  cost.head_flops = 2 * vocabulary;
  if (c.tie_word_embeddings) {
    const auto table = sizes.find(TensorPart::embedding);
    cost.weight_bytes[TensorPart::head] = table == sizes.end() ? 0 : table->second.bytes;
    if (!sizes.contains(TensorPart::head)) cost.matrix_flops += cost.head_flops;
  }
  for (const auto& [part, bytes] : cost.weight_bytes) cost.weight_bytes_total += bytes;

  const int64_t linear_layers = std::count(c.layers.begin(), c.layers.end(), LayerKind::linear_attention);
  const int64_t full_layers = c.num_layers() - linear_layers;
  const int64_t recurrent = int64_t{c.linear_value_heads} * c.linear_key_dim * c.linear_value_dim;
  const int64_t conv = int64_t{c.conv_kernel - 1} * c.conv_channels();
  cost.state_bytes = linear_layers * 2 * 4 * (recurrent + conv);
  cost.delta_flops = linear_layers * 7 * recurrent;
  cost.kv_bytes_per_position = full_layers * 2 * 2 * c.kv_size();
  cost.attention_flops_per_position = full_layers * 4 * c.query_size();
  return cost;
}

int64_t TokenCost::bytes_at(int64_t context) const {
  return weight_bytes_total + state_bytes + context * kv_bytes_per_position;
}

int64_t TokenCost::flops_at(int64_t context) const {
  return matrix_flops + delta_flops + context * attention_flops_per_position;
}

int64_t TokenCost::prompt_flops(int64_t tokens) const {
  const int64_t attended = tokens * (tokens + 1) / 2;
  return tokens * (matrix_flops - head_flops + delta_flops) + attended * attention_flops_per_position + head_flops;
}

}  // namespace lily
