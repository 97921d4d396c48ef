// A new file that is written in pieces, at any offset, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace lily {

class OutputFile {
 public:
  static Result<OutputFile> create(const std::string& path);  // an existing file is an error

  OutputFile() = default;
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  Result<void> write_at(int64_t offset, std::span<const std::byte> bytes) const;
  Result<void> sync() const;  // to the disk itself

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace lily
