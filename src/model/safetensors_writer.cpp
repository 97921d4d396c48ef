#include "model/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/mapped_file.h"

namespace lily {
namespace {

constexpr size_t data_alignment = 64;  // of the first tensor in the file: a cache line

std::string shard_name(size_t shard, size_t shards) {
  if (shards == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

Result<void> check_free_space(const std::string& directory, int64_t bytes) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error || space.available >= static_cast<uint64_t>(bytes)) return {};
  return Error{directory, "not enough free space", fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9),
               fmt::format("{:.2f} GB", static_cast<double>(space.available) / 1e9)};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, std::span<const TensorSpec> tensors) {
  // Wide types first, so that a narrow tensor of odd length leaves none of them unaligned.
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return size_of(tensors[a].dtype) > size_of(tensors[b].dtype); });

  SafetensorsWriter writer;
  writer.places_.resize(tensors.size());
  nlohmann::json header = {{"__metadata__", {{"format", "mlx"}}}};
  int64_t end = 0;
  for (const size_t i : order) {
    const TensorSpec& tensor = tensors[i];
    writer.places_[i] = end;
    end += tensor.bytes();
    header[tensor.name] = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {writer.places_[i], end}}};
  }
  std::string text = header.dump();
  text.resize((8 + text.size() + data_alignment - 1) / data_alignment * data_alignment - 8, ' ');
  const uint64_t length = text.size();
  for (int64_t& place : writer.places_) place += static_cast<int64_t>(8 + length);

  LILY_TRY(writer.file_, OutputFile::create(path));
  LILY_CHECK(writer.file_.write_at(0, std::as_bytes(std::span(&length, 1))));
  LILY_CHECK(writer.file_.write_at(8, bytes_of(text)));
  return writer;
}

Result<void> SafetensorsWriter::write(size_t tensor, int64_t offset, std::span<const std::byte> bytes) const {
  return file_.write_at(places_[tensor] + offset, bytes);
}

Result<CheckpointWriter> CheckpointWriter::create(const std::string& directory, std::span<const TensorSpec> tensors,
                                                  int64_t shard_bytes) {
  CheckpointWriter writer;
  std::vector<std::vector<TensorSpec>> shards(1);
  int64_t in_shard = 0, total = 0;
  for (const TensorSpec& tensor : tensors) {
    if (in_shard > 0 && in_shard + tensor.bytes() > shard_bytes) {
      shards.emplace_back();
      in_shard = 0;
    }
    writer.places_.push_back({shards.size() - 1, shards.back().size()});
    shards.back().push_back(tensor);
    in_shard += tensor.bytes();
    total += tensor.bytes();
  }
  LILY_CHECK(check_free_space(directory, total));
  nlohmann::json weight_map = nlohmann::json::object();
  for (size_t s = 0; s < shards.size(); ++s) {
    const std::string name = shard_name(s, shards.size());
    for (const TensorSpec& tensor : shards[s]) weight_map[tensor.name] = name;
    LILY_TRY(SafetensorsWriter shard, SafetensorsWriter::create(directory + "/" + name, shards[s]));
    writer.shards_.push_back(std::move(shard));
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}};
  writer.index_ = index.dump(2) + "\n";
  writer.index_path_ = directory + "/model.safetensors.index.json";
  return writer;
}

Result<void> CheckpointWriter::write(size_t tensor, int64_t offset, std::span<const std::byte> bytes) const {
  return shards_[places_[tensor].shard].write(places_[tensor].tensor, offset, bytes);
}

Result<void> CheckpointWriter::finish() {
  for (const SafetensorsWriter& shard : shards_) LILY_CHECK(shard.sync());
  return write_file(index_path_, bytes_of(index_));
}

Result<void> write_safetensors(const std::string& path, std::span<const TensorSpec> tensors,
                               std::span<const std::span<const std::byte>> data) {
  LILY_TRY(const SafetensorsWriter writer, SafetensorsWriter::create(path, tensors));
  for (size_t i = 0; i < tensors.size(); ++i) LILY_CHECK(writer.write(i, 0, data[i]));
  return {};
}

}  // namespace lily
