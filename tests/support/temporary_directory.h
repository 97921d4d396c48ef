// A fresh folder that goes away with the test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace lily::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(testing::TempDir() + "/lily-XXXXXX") {
    if (!::mkdtemp(path_.data())) ADD_FAILURE() << "no temporary directory at " << path_;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace lily::test
