#include "hub/local_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"

namespace lily::hub {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
}

fs::path cache_folder(const std::string& cache, const Repository& repository) {
  return fs::path(cache) / ("models--" + repository.organisation + "--" + repository.name);
}

// Every shard that the index names, or any weights where there is no index.
bool has_weights(const fs::path& directory) {
  const Result<std::string> index = read_file(directory / "model.safetensors.index.json");
  if (!index) return is_file(directory / "model.safetensors");
  const auto parsed = nlohmann::json::parse(*index, nullptr, false);
  const auto map = parsed.find("weight_map");
  if (!parsed.is_object() || map == parsed.end() || !map->is_object()) return false;
  return std::all_of(map->begin(), map->end(), [&](const nlohmann::json& shard) {
    return shard.is_string() && is_file(directory / shard.get<std::string>());
  });
}

}  // namespace

std::string record_path(const std::string& directory) { return directory + "/lily-pull.json"; }

std::optional<Snapshot> read_record(const std::string& directory) {
  const Result<std::string> text = read_file(record_path(directory));
  if (!text) return std::nullopt;
  Result<Snapshot> snapshot = parse_snapshot(directory, *text);
  if (!snapshot) return std::nullopt;
  return std::move(*snapshot);
}

bool is_complete(const std::string& directory, const Snapshot& snapshot) {
  return std::all_of(snapshot.files.begin(), snapshot.files.end(), [&](const RemoteFile& file) {
    const Result<Match> match = compare(directory, file, false, nullptr);
    return file.optional || (match && *match == Match::same);
  });
}

Result<Match> compare(const std::string& directory, const RemoteFile& file, bool hash,
                      const std::function<bool(int64_t)>& more) {
  const std::string path = directory + "/" + file.name;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Match::missing;
  if (!S_ISREG(info.st_mode) || info.st_size != file.size) return Match::differs;
  if (!hash) return Match::same;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return Error{.where = path, .what = std::string("cannot open: ") + std::strerror(errno)};
  Hasher hasher(file.digest.kind, file.size);
  const Result<int64_t> hashed = hash_descriptor(descriptor, hasher, more);
  ::close(descriptor);
  if (!hashed) {
    Error error = hashed.error();
    error.where = path;
    return error;
  }
  return hasher.finish() == file.digest ? Match::same : Match::differs;
}

std::string find_in_cache(const std::string& cache, const Repository& repository, const Snapshot& snapshot) {
  const std::string directory = cache_folder(cache, repository) / "snapshots" / snapshot.commit;
  return is_complete(directory, snapshot) ? directory : "";
}

std::string find_in_cache(const std::string& cache, const Repository& repository) {
  const fs::path folder = cache_folder(cache, repository);
  Result<std::string> commit = read_file(folder / "refs" / repository.revision);
  // A commit can be named directly, too.
  std::string name = commit ? commit->substr(0, commit->find_first_of(" \r\n")) : repository.revision;
  const bool plain = !name.empty() && name.find_first_not_of("0123456789abcdef") == std::string::npos;
  const fs::path directory = folder / "snapshots" / name;
  return plain && is_file(directory / "config.json") && has_weights(directory) ? directory.string() : "";
}

}  // namespace lily::hub
