// Copies of a model that are already on this machine: pulled earlier, or in the Hugging Face cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "hub/snapshot.h"

namespace lily::hub {

// The Hub's listing of what a folder holds, kept there once the folder is complete.
std::string record_path(const std::string& directory);
std::optional<Snapshot> read_record(const std::string& directory);

// Is every file that the engine needs there, in its right size?
bool is_complete(const std::string& directory, const Snapshot& snapshot);

enum class Match { same, missing, differs };

// Compares one file by size and, if `hash`, by checksum. `more` is told of bytes hashed; false ends it (as
// `differs`).
Result<Match> compare(const std::string& directory, const RemoteFile& file, bool hash,
                      const std::function<bool(int64_t)>& more);

// The cache's folder of one commit; empty where it lacks something that the engine needs.
std::string find_in_cache(const std::string& cache, const Repository& repository, const Snapshot& snapshot);

// The same without the Hub's listing: the commit that the cache last saw as `revision`, if its own index is
// satisfied.
std::string find_in_cache(const std::string& cache, const Repository& repository);

}  // namespace lily::hub
