// Snapshots on disk: one file each, which continues the file of a shorter prefix. A file appears whole or not at all
// (written beside, synced, renamed), and is checked by a hash when it is read; a damaged one is reported and removed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"

namespace lily {

// XXH3, 128 bits, in hexadecimal: the name of a sequence of tokens, and of its file.
std::string hash_of(std::span<const int32_t> tokens);

struct StoreOptions {
  std::string directory;                         // made if it is not there
  std::string model;                             // files of another model or backend are not seen
  size_t budget = size_t{16} << 30;              // bytes of all files; the oldest go
  std::function<void(const std::string&)> warn;  // one line; any thread
};

class SnapshotStore {
 public:
  static Result<std::unique_ptr<SnapshotStore>> open(const StoreOptions& options);
  ~SnapshotStore();  // writes what waits

  // What open() found and its headers hold, each after the one that it continues.
  struct Entry {
    std::string name, base;       // base: empty, or the name of the entry that it continues
    std::vector<int32_t> tokens;  // those after the base's
    int64_t position;
  };
  const std::vector<Entry>& found() const;

  // Begins to write `snapshot` of `tokens`, as a continuation of the entry `base` at `base_position`. False: too much waits
  // to be written, nothing happens.
  bool put(std::span<const int32_t> tokens, const std::string& base, int64_t base_position,
           std::shared_ptr<const Snapshot> snapshot);

  // Of the sequence that this entry continues; 0: none, or the entry is gone.
  int64_t base_position(const std::string& name);
  // `base`: the snapshot there; null for 0. Damage is reported, and the entry forgotten.
  Result<std::unique_ptr<Snapshot>> get(const std::string& name, Backend& backend, const Snapshot* base);

  const std::string& directory() const;  // of this model's files, for others that belong to them
  void flush();
  size_t bytes() const;  // of all files
  int64_t files() const;

 private:
  struct Impl;
  explicit SnapshotStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lily
