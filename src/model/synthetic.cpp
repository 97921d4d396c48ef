#include "model/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/mapped_file.h"
#include "base/try_parallel.h"
#include "model/config_json.h"
#include "model/safetensors_writer.h"
#include "model/shapes.h"
#include "model/tensor_names.h"

namespace lily {
namespace {

constexpr int64_t chunk_bytes = 4 << 20;  // per thread: large enough for one write call, small enough for the cache

// Counter-based random numbers (SplitMix64): value `index` of a stream needs no value before it.
struct Random {
  uint64_t key;

  uint64_t bits(uint64_t index) const {
    uint64_t x = key + (index + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  float uniform(uint64_t index) const { return static_cast<float>(bits(index) >> 40) * 0x1p-24f; }  // [0, 1)
  float symmetric(uint64_t index) const { return 2 * uniform(index) - 1; }                          // [-1, 1)
};

Random stream(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Random{Random{seed}.bits(hash)};
}

// Standard deviation of a matrix's weights: 1/sqrt(cols) keeps the size of what it multiplies. The head and the router
// see an input of size 1 and get more, so that logits have the spread of a trained model.
float spread(TensorPart part, int64_t cols) {
  const float factor = part == TensorPart::head ? 3.0f : part == TensorPart::router ? 2.0f : 1.0f;
  return factor / std::sqrt(static_cast<float>(cols));
}

// The scale of group `group`: codes are uniform, so their deviation times the scale is the spread; signs are mixed, as
// in real files.
float group_scale(const Random& random, uint64_t group, float deviation, int bits) {
  const auto levels = static_cast<float>(1 << bits);
  const float size = deviation / std::sqrt((levels * levels - 1) / 12);
  const float factor = 0.75f + 0.5f * random.uniform(group);
  return (random.bits(group) & 1) ? size * factor : -size * factor;
}

// One value of an unquantised tensor.
float plain_value(const TensorSpec& tensor, TensorPart part, const Random& random, uint64_t i) {
  if (part == TensorPart::norm) return 1 + 0.1f * random.symmetric(i);
  if (tensor.name.ends_with(".A_log")) return std::log(1 + 15 * random.uniform(i));
  if (tensor.name.ends_with(".dt_bias")) {  // softplus(dt_bias) from 0.001 to 0.1
    return std::log(std::expm1(0.001f * std::pow(100.0f, random.uniform(i))));
  }
  if (tensor.name.ends_with(".conv1d.weight")) return 0.8f * random.symmetric(i);
  return std::sqrt(3.0f) * spread(part, tensor.shape.back()) * random.symmetric(i);
}

std::string_view module_of(std::string_view name) { return name.substr(0, name.rfind('.')); }

}  // namespace

void fill_synthetic(const TensorSpec& tensor, const ModelConfig& config, uint64_t seed, int64_t offset,
                    std::span<std::byte> out) {
  const TensorPart part = part_of(tensor.name);
  const std::string_view module = module_of(tensor.name);
  if (tensor.dtype == DType::u32) {
    const Random codes = stream(seed, tensor.name);
    for (size_t i = 0; i < out.size(); i += 4) {
      const uint64_t word = (offset + i) / 4;
      const auto value = static_cast<uint32_t>(codes.bits(word / 2) >> (word % 2 * 32));
      std::memcpy(&out[i], &value, 4);
    }
    return;
  }
  const bool is_scale = tensor.name.ends_with(".scales"), is_bias = tensor.name.ends_with(".biases");
  const Random random = stream(seed, is_scale || is_bias ? module : tensor.name);
  const Quantization q = config.quantization.of(module);
  const float deviation = is_scale || is_bias ? spread(part, tensor.shape.back() * q.group_size) : 0;
  const float middle = static_cast<float>((1 << q.bits) - 1) / 2;
  for (size_t i = 0; i < out.size(); i += 2) {
    const uint64_t index = (offset + i) / 2;
    float value;
    if (is_scale || is_bias) {
      const float scale = group_scale(random, index, deviation, q.bits);
      value = is_scale ? scale : -middle * bf16_to_float(float_to_bf16(scale));
    } else {
      value = plain_value(tensor, part, random, index);
    }
    const uint16_t stored = float_to_bf16(value);
    std::memcpy(&out[i], &stored, 2);
  }
}

Result<void> write_synthetic(const std::string& directory, const ModelConfig& config, uint64_t seed,
                             const std::function<void(int64_t)>& progress) {
  struct Chunk {
    size_t tensor;
    int64_t offset, bytes;
  };
  const std::vector<TensorSpec> tensors = published_tensors(config);
  std::vector<Chunk> chunks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t bytes = tensors[i].bytes();
    for (int64_t offset = 0; offset < bytes; offset += chunk_bytes) {
      chunks.push_back({i, offset, std::min(chunk_bytes, bytes - offset)});
    }
  }
  LILY_TRY(CheckpointWriter writer, CheckpointWriter::create(directory, tensors));
  ThreadPool pool;
  std::vector<std::vector<std::byte>> buffers(pool.threads(), std::vector<std::byte>(chunk_bytes));
  std::atomic<int64_t> done{0};
  LILY_CHECK(try_parallel_for(pool, static_cast<int64_t>(chunks.size()), [&](int64_t index, int worker) {
    const Chunk& chunk = chunks[index];
    const std::span bytes(buffers[worker].data(), static_cast<size_t>(chunk.bytes));
    fill_synthetic(tensors[chunk.tensor], config, seed, chunk.offset, bytes);
    const Result<void> written = writer.write(chunk.tensor, chunk.offset, bytes);
    done += chunk.bytes;
    if (worker == 0 && progress) progress(done);
    return written;
  }));
  LILY_CHECK(writer.finish());
  const std::string json = config_json(config);
  return write_file(directory + "/config.json", std::as_bytes(std::span(json)));
}

}  // namespace lily
