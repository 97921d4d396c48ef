// A read-only memory-mapped file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace lily {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  // Zeros that take no memory as long as few of them are read.
  static Result<MappedFile> zeros(size_t size);

  // Copies the file into memory of the process, in huge pages where there are any, and lets the mapping go.
  Result<void> copy_into_memory();

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole of a small regular file: config.json, tokenizer.json.
Result<std::string> read_file(const std::string& path);

// The whole of a file that the user names: a text, a list of token ids. Pipes and devices are read to their end.
Result<std::string> read_input(const std::string& path);

// Writes through a temporary file in the same folder and an atomic rename: never half-written.
Result<void> write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace lily
