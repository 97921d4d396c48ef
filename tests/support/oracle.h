// The oracle checkpoints beside the checkout: small models with outputs computed by Hugging Face transformers.
// They are not part of the project; tests that use them skip where they are absent.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint.h"

namespace lily::test {

struct Oracle {
  std::string directory;
  std::shared_ptr<const Checkpoint> checkpoint;
  MappedFile file;
  TensorMap reference;

  template <class T>
  std::span<const T> get(const std::string& name) const {
    const Tensor& tensor = reference.at(name);
    return {reinterpret_cast<const T*>(tensor.data), tensor.bytes / sizeof(T)};
  }
  std::span<const int32_t> input_ids() const { return get<int32_t>("input_ids"); }
};

inline std::filesystem::path oracle_archive(const std::string& name) {
  return std::filesystem::path(LILY_SOURCE_DIR) / "../shared/oracle" / (name + ".tar");
}

inline bool has_oracle(const std::string& name) { return std::filesystem::exists(oracle_archive(name)); }

#define LILY_NEED_ORACLE(name) \
  if (!lily::test::has_oracle(name)) GTEST_SKIP() << "no " << lily::test::oracle_archive(name).string()

// Unpacks the archive to a folder of this process and opens it.
inline Oracle open_oracle(const std::string& name) {
  const auto root = std::filesystem::temp_directory_path() / ("lily_oracle_" + std::to_string(::getpid()));
  std::filesystem::create_directories(root);
  if (!std::filesystem::exists(root / name)) {
    const std::string command = "tar xf '" + oracle_archive(name).string() + "' -C '" + root.string() + "'";
    if (std::system(command.c_str()) != 0) ADD_FAILURE() << command;
    static const struct Cleaner {
      std::filesystem::path path;
      ~Cleaner() { std::filesystem::remove_all(path); }
    } cleaner{root};
  }
  Oracle oracle;
  oracle.directory = (root / name).string();
  auto checkpoint = Checkpoint::open(oracle.directory);
  if (!checkpoint) ADD_FAILURE() << checkpoint.error().message();
  oracle.checkpoint = std::make_shared<Checkpoint>(std::move(checkpoint).value());
  oracle.file = MappedFile::open(oracle.directory + "/reference.safetensors").value();
  oracle.reference = parse_safetensors(oracle.file.bytes(), oracle.file.path()).value();
  return oracle;
}

}  // namespace lily::test
