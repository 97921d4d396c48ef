#include "hub/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace lily::hub {

std::string partial_path(const std::string& directory, const RemoteFile& file) {
  return directory + "/" + file.name + "." + file.digest.hex.substr(0, 12) + ".partial";
}

int64_t partial_bytes(const std::string& directory, const RemoteFile& file) {
  struct stat info {};
  if (::stat(partial_path(directory, file).c_str(), &info) != 0) return 0;
  return info.st_size > file.size ? 0 : static_cast<int64_t>(info.st_size);
}

PartialFile::Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

PartialFile::PartialFile(std::string path, Descriptor descriptor, const RemoteFile& file, Activity& activity)
    : path_(std::move(path)),
      descriptor_(std::move(descriptor)),
      file_(&file),
      activity_(&activity),
      hasher_(file.digest.kind, file.size) {}

Error PartialFile::system_error(const char* what) const {
  return {.where = path_, .what = std::string(what) + ": " + std::strerror(errno), .exit_code = 1};
}

Result<PartialFile> PartialFile::open(const std::string& directory, const RemoteFile& file, Activity& activity) {
  const std::string path = partial_path(directory, file);
  PartialFile partial(path, Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)), file, activity);
  if (partial.descriptor_.get() < 0) return partial.system_error("cannot create");
  const int64_t held = partial_bytes(directory, file);
  if (held == 0) {
    LILY_CHECK(partial.restart());  // also where it is longer than the file can be
    return partial;
  }
  LILY_TRY(partial.size_,
           hash_descriptor(partial.descriptor_.get(), partial.hasher_, [&](int64_t) { return !activity.stopping(); }));
  if (activity.stopping()) return interruption();
  return partial;
}

Result<void> PartialFile::append(std::span<const std::byte> bytes) {
  hasher_.update(bytes);
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), size_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write");
    bytes = bytes.subspan(static_cast<size_t>(written));
    size_ += written;
    activity_->add_bytes(written);
  }
  return {};
}

Result<void> PartialFile::restart() {
  if (::ftruncate(descriptor_.get(), 0) != 0) return system_error("cannot empty");
  activity_->add_bytes(-size_);
  size_ = 0;
  hasher_ = Hasher(file_->digest.kind, file_->size);
  return {};
}

Result<void> PartialFile::sync() {
  if (::fsync(descriptor_.get()) != 0) return system_error("cannot write");
  return {};
}

}  // namespace lily::hub
