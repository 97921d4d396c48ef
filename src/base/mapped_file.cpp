#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace lily {
namespace {

// Many times a tokenizer.json of 248,000 tokens; a config that is larger is none.
constexpr size_t largest_small_file = 256 << 20;

Error system_error(const std::string& path, const char* what) {
  return Error{.where = path, .what = std::string(what) + ": " + std::strerror(errno)};
}

// The input was right, the disk was not.
Error write_error(const std::string& path) {
  Error error = system_error(path, "cannot write");
  error.exit_code = 1;
  return error;
}

// Closes a file descriptor at the end of its scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Result<size_t> regular_file_size(const Descriptor& file, const std::string& path) {
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return system_error(path, "cannot read");
  if (!S_ISREG(info.st_mode)) return Error{.where = path, .what = "not a regular file"};
  return static_cast<size_t>(info.st_size);
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return write_error(path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Result<std::string> read_all(const Descriptor& file, const std::string& path) {
  std::string text;
  char buffer[64 * 1024];
  while (true) {
    const ssize_t count = ::read(file.fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path, "cannot read");
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return system_error(path, "cannot open");
  LILY_TRY(const size_t size, regular_file_size(file, path));
  MappedFile mapped;
  mapped.path_ = path;
  if (size == 0) return mapped;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return system_error(path, "cannot map");
#ifdef MADV_HUGEPAGE
  // Where the file system keeps large pages, weights stream up to half again as fast: with 4 KB pages, looking up
  // addresses is what limits a read. Elsewhere this is refused, and nothing is lost.
  ::madvise(data, size, MADV_HUGEPAGE);
#endif
  mapped.data_ = static_cast<const std::byte*>(data);
  mapped.size_ = size;
  return mapped;
}

Result<MappedFile> MappedFile::zeros(size_t size) {
  MappedFile mapped;
  mapped.path_ = "zeros";
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return system_error(mapped.path_, "cannot map");
  mapped.data_ = static_cast<const std::byte*>(data);
  mapped.size_ = size;
  return mapped;
}

Result<void> MappedFile::copy_into_memory() {
  if (size_ == 0) return {};
  void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Error{.where = path_, .what = "no memory for a copy of it", .got = std::strerror(errno), .exit_code = 1};
  }
#ifdef MADV_HUGEPAGE
  ::madvise(memory, size_, MADV_HUGEPAGE);
#endif
  constexpr size_t piece = size_t{16} << 20;
  auto* from = const_cast<std::byte*>(data_);
  for (size_t at = 0; at < size_; at += piece) {
    const size_t n = std::min(piece, size_ - at);
    std::memcpy(static_cast<std::byte*>(memory) + at, from + at, n);
#ifdef MADV_PAGEOUT
    // Twice the file may not fit into memory, and huge pages for the copy need free ones.
    ::madvise(from + at, n, MADV_PAGEOUT);
#endif
  }
  ::mprotect(memory, size_, PROT_READ);
  ::munmap(from, size_);
  data_ = static_cast<const std::byte*>(memory);
  return {};
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> read_file(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO that nobody writes to would wait forever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return system_error(path, "cannot open");
  LILY_TRY(const size_t size, regular_file_size(file, path));
  if (size > largest_small_file) {
    return Error{.where = path,
                 .what = "too large",
                 .expected = "at most " + std::to_string(largest_small_file >> 20) + " MiB",
                 .got = std::to_string(size >> 20) + " MiB"};
  }
  return read_all(file, path);
}

Result<std::string> read_input(const std::string& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return system_error(path, "cannot open");
  return read_all(file, path);
}

Result<void> write_file(const std::string& path, std::span<const std::byte> bytes) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return Error{.where = path, .what = "cannot be replaced", .expected = "a regular file or none"};
  }
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  Result<void> written;
  {
    const Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.fd < 0) return system_error(temporary, "cannot create");
    written = write_all(file.fd, bytes, temporary);
    if (written && ::fsync(file.fd) != 0) written = write_error(temporary);
  }
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = system_error(path, "cannot replace");
  if (!written) ::unlink(temporary.c_str());
  return written;
}

}  // namespace lily
