#include "model/checkpoint.h"

#include <sys/stat.h>

#include <set>

#include "model/json.h"
#include "model/shapes.h"

namespace lily {
namespace {

using WeightMap = std::map<std::string, std::string>;  // tensor -> shard

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

// A shard lies beside its index: a name with a folder in it could point anywhere.
bool is_plain_file_name(const std::string& name) {
  return name.ends_with(".safetensors") && name[0] != '.' &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

Result<WeightMap> read_index(const std::string& path) {
  LILY_TRY(const nlohmann::json index, read_json_object(path));
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object() || weight_map->empty()) {
    return Error{path + ": weight_map", "wrong value", "an object from tensor names to shards",
                 weight_map == index.end() ? "none" : kind_of(*weight_map)};
  }
  WeightMap shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string() || !is_plain_file_name(shard.get_ref<const std::string&>())) {
      return Error{path + ": " + tensor, "shard name", "a plain .safetensors file name", short_form(shard)};
    }
    shards.emplace(tensor, shard.get<std::string>());
  }
  return shards;
}

Result<void> check_all_present(const std::set<std::string>& shards, const std::string& directory,
                               const std::string& index) {
  std::string missing;
  int count = 0;
  for (const std::string& shard : shards) {
    if (exists(directory + "/" + shard)) continue;
    missing += (count++ ? ", " : "") + shard;
  }
  if (count == 0) return {};
  return Error{index, "shards missing", std::to_string(shards.size()) + " files",
               std::to_string(shards.size() - count) + " (missing: " + missing + ")"};
}

Result<void> check_against_index(const TensorMap& tensors, const WeightMap& index, const std::string& shard,
                                 const std::string& path) {
  for (const auto& [name, tensor] : tensors) {
    const auto entry = index.find(name);
    if (entry == index.end()) return Error{path + ": " + name, "tensor is not in the index", "", ""};
    if (entry->second != shard)
      return Error{path + ": " + name, "tensor is in another shard than the index says", entry->second, shard};
  }
  for (const auto& [name, holder] : index) {
    if (holder == shard && !tensors.contains(name)) {
      return Error{path + ": " + name, "tensor is in the index but not in its shard", "", ""};
    }
  }
  return {};
}

}  // namespace

Result<Checkpoint> Checkpoint::blank(ModelConfig config) {
  Checkpoint checkpoint;
  checkpoint.directory_ = config.model_type;
  checkpoint.config_ = std::move(config);
  const std::vector<TensorSpec> specs = published_tensors(checkpoint.config_);
  size_t total = 0;
  for (const TensorSpec& spec : specs) total += static_cast<size_t>(spec.bytes());
  LILY_TRY(MappedFile zeros, MappedFile::zeros(total));
  const std::byte* data = zeros.bytes().data();
  for (const TensorSpec& spec : specs) {
    const auto bytes = static_cast<size_t>(spec.bytes());
    checkpoint.tensors_.emplace(spec.name, Tensor{spec.dtype, spec.shape, data, bytes, zeros.path()});
    data += bytes;
  }
  checkpoint.shards_.push_back(std::move(zeros));
  return checkpoint;
}

Result<Checkpoint> Checkpoint::open(const std::string& directory, WeightStorage storage) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Error{directory, "not a model", "a directory with config.json and model.safetensors",
                 exists(directory) ? "a file" : "nothing there"};
  }
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  LILY_CHECK(checkpoint.read_configuration());
  LILY_CHECK(checkpoint.map_tensors(storage));
  return checkpoint;
}

Result<void> Checkpoint::read_configuration() {
  const std::string path = directory_ + "/config.json";
  LILY_TRY(const std::string text, read_file(path));
  LILY_TRY(config_, parse_config(text, path));
  const std::string generation = directory_ + "/generation_config.json";
  if (exists(generation)) LILY_CHECK(add_eos_token_ids(generation, config_));
  return {};
}

Result<void> Checkpoint::map_tensors(WeightStorage storage) {
  const std::string index_path = directory_ + "/model.safetensors.index.json";
  const bool sharded = exists(index_path);
  WeightMap index;
  std::set<std::string> shards = {"model.safetensors"};
  if (sharded) {
    LILY_TRY(index, read_index(index_path));
    shards.clear();
    for (const auto& [tensor, shard] : index) shards.insert(shard);
    LILY_CHECK(check_all_present(shards, directory_, index_path));
  }
  for (const std::string& shard : shards) {
    LILY_TRY(MappedFile file, MappedFile::open(directory_ + "/" + shard));
    LILY_TRY(TensorMap tensors, parse_safetensors(file.bytes(), file.path()));
    if (storage == WeightStorage::memory) {  // only now that the file is known to be good
      LILY_CHECK(file.copy_into_memory());
      LILY_TRY(tensors, parse_safetensors(file.bytes(), file.path()));
    }
    if (sharded) LILY_CHECK(check_against_index(tensors, index, shard, file.path()));
    tensors_.merge(tensors);
    shards_.push_back(std::move(file));
  }
  return {};
}

}  // namespace lily
