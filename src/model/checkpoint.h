// A checkpoint directory: config.json and memory-mapped safetensors, one file or shards with an index.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "model/config.h"

namespace lily {

// A tensor in the mapped file; `data` lives as long as the checkpoint. It may lie at any address: MLX does not pad the
// header of its files, so read elements with load_unaligned.
struct Tensor {
  DType dtype = DType::other;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  size_t bytes = 0;
  std::string file;  // path of the shard, for errors

  int64_t elements() const;
  std::string describe() const;  // "BF16 [1024, 64]"
};

using TensorMap = std::map<std::string, Tensor, std::less<>>;

// Parses the header of one safetensors file and checks it against the file's size: header length, JSON, dtypes,
// shapes, offsets in range, sizes equal to shape times dtype, no gap or overlap.
Result<TensorMap> parse_safetensors(std::span<const std::byte> file, const std::string& path);

// Weights stay in the mapped files, so that opening takes no time; or are copied into memory, where they stream faster.
enum class WeightStorage { mapped, memory };

class Checkpoint {
 public:
  // Opens `directory`. Nothing is interpreted but headers and small JSON files.
  static Result<Checkpoint> open(const std::string& directory, WeightStorage storage = WeightStorage::mapped);

  // The published form of `config` with zeros for weights, which take no memory: for plans, not for runs.
  static Result<Checkpoint> blank(ModelConfig config);

  const ModelConfig& config() const { return config_; }
  const TensorMap& tensors() const { return tensors_; }
  const std::string& directory() const { return directory_; }

 private:
  Result<void> read_configuration();
  Result<void> map_tensors(WeightStorage storage);

  std::string directory_;
  ModelConfig config_;
  std::vector<MappedFile> shards_;
  TensorMap tensors_;
};

}  // namespace lily
