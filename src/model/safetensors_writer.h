// Writes safetensors: one file, or a checkpoint of shards with its index.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "model/tensor_spec.h"

namespace lily {

// One file. The header is written at once; the data come in pieces, in any order and from any thread.
class SafetensorsWriter {
 public:
  static Result<SafetensorsWriter> create(const std::string& path, std::span<const TensorSpec> tensors);

  // `offset` in bytes from the start of tensor number `tensor`.
  Result<void> write(size_t tensor, int64_t offset, std::span<const std::byte> bytes) const;
  Result<void> sync() const { return file_.sync(); }

 private:
  OutputFile file_;
  std::vector<int64_t> places_;  // of each tensor, from the start of the file
};

// A checkpoint: model.safetensors, or model-0000K-of-0000N.safetensors, and model.safetensors.index.json.
class CheckpointWriter {
 public:
  static constexpr int64_t max_shard_bytes = int64_t{5} << 30;  // as MLX and Hugging Face cut them

  // Too little free space for all tensors is an error, before anything is written.
  static Result<CheckpointWriter> create(const std::string& directory, std::span<const TensorSpec> tensors,
                                         int64_t shard_bytes = max_shard_bytes);

  Result<void> write(size_t tensor, int64_t offset, std::span<const std::byte> bytes) const;
  Result<void> finish();  // to the disk, then the index

 private:
  struct Place {
    size_t shard, tensor;
  };

  std::string index_path_;
  std::string index_;
  std::vector<SafetensorsWriter> shards_;
  std::vector<Place> places_;  // of each tensor
};

// A whole small file; data[i] is what tensors[i] holds.
Result<void> write_safetensors(const std::string& path, std::span<const TensorSpec> tensors,
                               std::span<const std::span<const std::byte>> data);

}  // namespace lily
