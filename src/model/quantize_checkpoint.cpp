#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/try_parallel.h"
#include "model/config_json.h"
#include "model/json.h"
#include "model/quantize.h"
#include "model/safetensors_writer.h"
#include "model/shapes.h"
#include "model/tensor_names.h"
#include "model/weights.h"

namespace lily {
namespace {

namespace fs = std::filesystem;

constexpr int64_t chunk_weights = 1 << 20;  // per thread

// Where the values of the output come from, by canonical module or tensor name.
struct Sources {
  std::map<std::string, ExpertMatrices> matrices;  // a plain matrix is that of a single expert
  std::map<std::string, std::vector<float>> vectors;

  void add(const std::string& module, const WeightMatrix& matrix) {
    matrices[module] = {matrix, matrix.rows, 0, matrix.rows};
  }
  void add(const std::string& module, const ExpertMatrices& experts) { matrices[module] = experts; }
  void add(const std::string& name, const std::vector<float>& values) { vectors[name] = values; }
  void add(const std::string& module, const MlpWeights& mlp) {
    add(module + ".gate_proj", mlp.gate);
    add(module + ".up_proj", mlp.up);
    add(module + ".down_proj", mlp.down);
  }
};

// [taps, channels] as bound to [channels, taps] as stored.
std::vector<float> by_channel(const std::vector<float>& conv, int64_t channels) {
  const int64_t taps = static_cast<int64_t>(conv.size()) / channels;
  std::vector<float> stored(conv.size());
  for (size_t i = 0; i < conv.size(); ++i) stored[i] = conv[i / taps + i % taps * channels];
  return stored;
}

void add_attention(Sources& sources, const std::string& layer, const LayerWeights& w) {
  const std::string full = layer + ".self_attn.", linear = layer + ".linear_attn.";
  if (w.kind == LayerKind::full_attention) {
    sources.add(full + "q_proj", w.full.q);
    sources.add(full + "k_proj", w.full.k);
    sources.add(full + "v_proj", w.full.v);
    sources.add(full + "o_proj", w.full.o);
    sources.add(full + "q_norm.weight", w.full.q_norm);
    sources.add(full + "k_norm.weight", w.full.k_norm);
    return;
  }
  sources.add(linear + "in_proj_qkv", w.linear.qkv);
  sources.add(linear + "in_proj_z", w.linear.z);
  sources.add(linear + "in_proj_a", w.linear.a);
  sources.add(linear + "in_proj_b", w.linear.b);
  sources.add(linear + "out_proj", w.linear.out);
  sources.add(linear + "conv1d.weight", by_channel(w.linear.conv, w.linear.qkv.rows));
  sources.add(linear + "A_log", w.linear.a_log);
  sources.add(linear + "dt_bias", w.linear.dt_bias);
  sources.add(linear + "norm.weight", w.linear.norm);
}

Sources sources_of(const ModelWeights& weights, bool is_moe) {
  Sources sources;
  sources.add("model.embed_tokens", weights.embed);
  sources.add("lm_head", weights.head);
  sources.add("model.norm.weight", weights.final_norm);
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const LayerWeights& w = weights.layers[i];
    const std::string layer = "model.layers." + std::to_string(i), mlp = layer + ".mlp";
    sources.add(layer + ".input_layernorm.weight", w.input_norm);
    sources.add(layer + ".post_attention_layernorm.weight", w.post_attention_norm);
    add_attention(sources, layer, w);
    if (!is_moe) {
      sources.add(mlp, w.mlp);
      continue;
    }
    sources.add(mlp + ".gate", w.moe.router);
    sources.add(mlp + ".switch_mlp.gate_proj", w.moe.gate);
    sources.add(mlp + ".switch_mlp.up_proj", w.moe.up);
    sources.add(mlp + ".switch_mlp.down_proj", w.moe.down);
    sources.add(mlp + ".shared_expert", w.moe.shared);
    sources.add(mlp + ".shared_expert_gate", w.moe.shared_expert_gate);
  }
  return sources;
}

// Some rows of one module; .scales and .biases follow .weight in the list of tensors.
struct Job {
  size_t tensor;
  std::string module;  // empty: a vector
  int64_t first_row, rows;
};

class Converter {
 public:
  Converter(const std::string& source_path, const Sources& sources, const ModelConfig& target,
            const std::vector<TensorSpec>& tensors, const CheckpointWriter& writer)
      : source_path_(source_path), sources_(sources), target_(target), tensors_(tensors), writer_(writer) {
    for (size_t i = 0; i < tensors.size(); ++i) add_jobs(i);
  }

  int64_t total() const { return total_; }

  Result<void> run(const std::function<void(int64_t, int64_t)>& progress) const {
    ThreadPool pool;
    std::atomic<int64_t> done{0};
    return try_parallel_for(pool, static_cast<int64_t>(jobs_.size()), [&](int64_t index, int worker) {
      const Job& job = jobs_[index];
      Result<void> result = job.module.empty() ? write_vector(job) : write_rows(job);
      done += weights_of(job);
      if (worker == 0 && progress) progress(done, total_);
      return result;
    });
  }

 private:
  int64_t weights_of(const Job& job) const {
    return job.module.empty() ? tensors_[job.tensor].elements() : job.rows * sources_.matrices.at(job.module).all.cols;
  }

  void add_jobs(size_t tensor) {
    const std::string name = canonical_name(tensors_[tensor].name);
    if (sources_.vectors.contains(name)) {
      jobs_.push_back({tensor, "", 0, 0});
      total_ += weights_of(jobs_.back());
    }
    if (!name.ends_with(".weight")) return;
    const std::string module = name.substr(0, name.size() - 7);
    const auto source = sources_.matrices.find(module);
    if (source == sources_.matrices.end()) return;
    const int64_t cols = source->second.all.cols, rows = tensors_[tensor].elements() / tensors_[tensor].shape.back();
    const int64_t step = std::max<int64_t>(1, chunk_weights / cols);
    for (int64_t row = 0; row < rows; row += step) jobs_.push_back({tensor, module, row, std::min(step, rows - row)});
    total_ += rows * cols;
  }

  Result<void> write_vector(const Job& job) const {
    const TensorSpec& tensor = tensors_[job.tensor];
    const std::vector<float>& values = sources_.vectors.at(canonical_name(tensor.name));
    if (tensor.dtype == DType::f32) return writer_.write(job.tensor, 0, std::as_bytes(std::span(values)));
    std::vector<uint16_t> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), float_to_bf16);
    return writer_.write(job.tensor, 0, std::as_bytes(std::span(rounded)));
  }

  // Row `row` of all experts' rows, rounded to bf16 as MLX does before it quantises.
  static bool read_row(const ExpertMatrices& source, int64_t row, std::span<float> values) {
    source.all.dequantize_row(row / source.rows * source.stride + source.offset + row % source.rows, values.data());
    for (float& value : values) value = bf16_to_float(float_to_bf16(value));
    return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  }

  Result<void> write_rows(const Job& job) const {
    const ExpertMatrices& source = sources_.matrices.at(job.module);
    const TensorSpec& tensor = tensors_[job.tensor];
    const bool quantized = tensor.dtype == DType::u32;
    const Quantization q = target_.quantization.of(job.module);
    const int64_t cols = source.all.cols;
    const int64_t row_bytes = tensor.bytes() / tensor.elements() * tensor.shape.back();
    const int64_t groups = quantized ? cols / q.group_size : 0;
    std::vector<float> row(cols);
    std::vector<std::byte> data(job.rows * row_bytes);
    std::vector<uint16_t> scales(job.rows * groups), biases(job.rows * groups);
    for (int64_t r = 0; r < job.rows; ++r) {
      std::byte* out = &data[r * row_bytes];
      if (!read_row(source, job.first_row + r, row)) {
        return Error{source_path_ + ": " + tensor.name, "cannot be quantised", "finite weights",
                     "NaN or infinity in row " + std::to_string(job.first_row + r)};
      }
      if (quantized) {
        quantize_row(row, q, out, &scales[r * groups], &biases[r * groups]);
      } else {
        for (int64_t i = 0; i < cols; ++i) {
          const uint16_t value = float_to_bf16(row[i]);
          std::memcpy(out + 2 * i, &value, 2);
        }
      }
    }
    LILY_CHECK(writer_.write(job.tensor, job.first_row * row_bytes, data));
    if (!quantized) return {};
    LILY_CHECK(writer_.write(job.tensor + 1, job.first_row * groups * 2, std::as_bytes(std::span(scales))));
    return writer_.write(job.tensor + 2, job.first_row * groups * 2, std::as_bytes(std::span(biases)));
  }

  const std::string& source_path_;
  const Sources& sources_;
  const ModelConfig& target_;
  const std::vector<TensorSpec>& tensors_;
  const CheckpointWriter& writer_;
  std::vector<Job> jobs_;
  int64_t total_ = 0;
};

Result<void> copy_companions(const std::string& source, const std::string& destination) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json",
        "generation_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt"}) {
    std::error_code error;
    if (!fs::exists(fs::path(source) / name, error)) continue;
    fs::copy_file(fs::path(source) / name, fs::path(destination) / name, error);
    if (error) return Error{destination + "/" + name, "cannot copy: " + error.message(), "", ""};
  }
  return {};
}

Result<void> check_unquantized(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (!name.ends_with(".scales") || is_skipped(part_of(name))) continue;
    return Error{tensor.file + ": " + name, "already quantised", "F32, F16 or BF16 weights", tensor.describe()};
  }
  return {};
}

// A_log stays F32 where it is: MLX leaves it out of its conversion to bf16.
void keep_wide_decays(const Checkpoint& checkpoint, std::vector<TensorSpec>& tensors) {
  std::map<std::string, DType> stored;
  for (const auto& [name, tensor] : checkpoint.tensors()) stored[canonical_name(name)] = tensor.dtype;
  for (TensorSpec& tensor : tensors) {
    if (!tensor.name.ends_with(".A_log")) continue;
    if (stored[canonical_name(tensor.name)] == DType::f32) tensor.dtype = DType::f32;
  }
}

Result<void> write_config(const std::string& source, const std::string& directory, const QuantizationConfig& q) {
  LILY_TRY(nlohmann::json config, read_json_object(source + "/config.json"));
  config["quantization"] = config["quantization_config"] = quantization_json(q);
  const std::string text = config.dump(2) + "\n";
  return write_file(directory + "/config.json", std::as_bytes(std::span(text)));
}

Result<PartSizes> convert_into(const std::string& directory, const Checkpoint& checkpoint,
                               const QuantizeOptions& options, const std::function<void(int64_t, int64_t)>& progress) {
  LILY_TRY(const ModelWeights weights, bind_weights(checkpoint));
  ModelConfig target = checkpoint.config();
  target.quantization = mixed_quantization(target, options.weights, options.router_bits);
  std::vector<TensorSpec> tensors = published_tensors(target);
  keep_wide_decays(checkpoint, tensors);
  LILY_TRY(CheckpointWriter writer, CheckpointWriter::create(directory, tensors));
  const Sources sources = sources_of(weights, target.is_moe());
  LILY_CHECK(Converter(checkpoint.directory(), sources, target, tensors, writer).run(progress));
  LILY_CHECK(writer.finish());
  LILY_CHECK(copy_companions(checkpoint.directory(), directory));
  LILY_CHECK(write_config(checkpoint.directory(), directory, target.quantization));
  return sizes_by_part(tensors, target);
}

}  // namespace

Result<QuantizeSummary> quantize_checkpoint(const std::string& source, const std::string& destination,
                                            const QuantizeOptions& options,
                                            const std::function<void(int64_t, int64_t)>& progress) {
  LILY_TRY(const Checkpoint checkpoint, Checkpoint::open(source));
  LILY_CHECK(check_unquantized(checkpoint));
  std::string name = destination;
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  const std::string partial = name + ".partial";
  std::error_code error;
  for (const std::string& path : {name, partial}) {
    if (fs::exists(path, error)) return Error{path, "exists already", "a new directory", ""};
  }
  if (!fs::create_directories(partial, error)) return Error{partial, "cannot create: " + error.message(), "", ""};
  Result<PartSizes> converted = convert_into(partial, checkpoint, options, progress);
  if (converted) {
    fs::rename(partial, name, error);
    if (error) converted = Error{name, "cannot create: " + error.message(), "", ""};
  }
  if (!converted) {
    fs::remove_all(partial, error);
    return converted.error();
  }
  return QuantizeSummary{sizes_by_part(checkpoint.tensors(), checkpoint.config()), *converted};
}

}  // namespace lily
