// The oracle checkpoints: shared/oracle/<name>.tar beside the repository, unpacked once per program.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/temporary_directory.h"

// In a test: declares nothing, skips the test where the oracle is absent.
#define LILY_SKIP_WITHOUT_ORACLE(name)                                                    \
  if (!lily::test::has_oracle(name)) GTEST_SKIP() << "no shared/oracle/" << name << ".tar"

namespace lily::test {

inline std::string oracle_archive(const std::string& name) {
  return LILY_SOURCE_DIR "/../shared/oracle/" + name + ".tar";
}

inline bool has_oracle(const std::string& name) { return std::filesystem::exists(oracle_archive(name)); }

// The unpacked folder with config.json, model.safetensors and reference.safetensors.
inline std::string oracle(const std::string& name) {
  static const TemporaryDirectory root;
  const std::string folder = root / name;
  if (!std::filesystem::exists(folder)) {
    const std::string command = "tar -xf \"" + oracle_archive(name) + "\" -C \"" + root.path() + "\"";
    if (std::system(command.c_str()) != 0) ADD_FAILURE() << command;
  }
  return folder;
}

}  // namespace lily::test
