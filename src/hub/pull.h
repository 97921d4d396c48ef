// Brings a model from the Hugging Face Hub to this machine, or finds the copy that is already here.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/connection.h"
#include "hub/snapshot.h"

namespace lily::hub {

struct PullOptions {
  Repository repository;
  std::string directory;   // destination; empty: models/ in Lily's data directory
  bool verify = false;     // checksums of what is already here, not only sizes
  bool update = false;     // replace files that differ from the published ones
  NetworkOptions network;  // endpoint and token are filled in from the environment
};

struct Progress {
  enum class Phase { checking, downloading };
  Phase phase;
  int64_t done;   // bytes
  int64_t total;  // bytes
  int files_done;
  int files;
};

struct Observer {
  std::function<void(const Progress&)> progress;  // in the thread of pull()
  std::function<void(const std::string&)> note;   // in any thread, one at a time
};

struct Pulled {
  enum class How {
    downloaded,
    up_to_date,
    in_cache,     // the Hugging Face cache's own copy, used in place
    out_of_date,  // complete, but the Hub has a newer one
    unconfirmed,  // complete, but the Hub could not be asked (`why`)
  };
  How how;
  std::string directory;
  std::string commit;
  std::string why;
};

// Never deletes a file of another origin, and replaces one only if `update` says so. Exit codes of errors: 2
// for a request that cannot be met, 1 where network, server or disk failed, 130 when `interrupted` was set.
Result<Pulled> pull(const PullOptions& options, const std::atomic<bool>& interrupted, const Observer& observer);

}  // namespace lily::hub
