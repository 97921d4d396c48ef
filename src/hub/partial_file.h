// A file on its way: NAME.CHECKSUM.partial beside its final place. The name says which content it grows
// towards, so a resumed download never mixes two versions, and no other state has to be kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "hub/activity.h"
#include "hub/snapshot.h"

namespace lily::hub {

std::string partial_path(const std::string& directory, const RemoteFile& file);

// Bytes of `file` that an earlier pull left there.
int64_t partial_bytes(const std::string& directory, const RemoteFile& file);

class PartialFile {
 public:
  // Opens or creates it, and hashes what it already holds. `activity` is told of what comes and goes
  // afterwards.
  static Result<PartialFile> open(const std::string& directory, const RemoteFile& file, Activity& activity);

  int64_t size() const { return size_; }

  Result<void> append(std::span<const std::byte> bytes);
  // Forgets everything.
  Result<void> restart();
  // The whole content's digest; only restart() may follow.
  Digest finish() { return hasher_.finish(); }
  // Onto the disk itself, so that the rename that follows never shows a hollow file after a power cut.
  Result<void> sync();

 private:
  class Descriptor {
   public:
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    ~Descriptor();
    int get() const { return fd_; }

   private:
    int fd_;
  };
  PartialFile(std::string path, Descriptor descriptor, const RemoteFile& file, Activity& activity);
  Error system_error(const char* what) const;

  std::string path_;
  Descriptor descriptor_;
  const RemoteFile* file_;
  Activity* activity_;
  Hasher hasher_;
  int64_t size_ = 0;
};

}  // namespace lily::hub
