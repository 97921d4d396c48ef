#include "cli/output_path.h"

#include <unistd.h>

#include <filesystem>

namespace lily::cli {

namespace fs = std::filesystem;

Result<void> check_output(const std::string& path, const Checkpoint& checkpoint,
                          const std::vector<std::string>& inputs) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (!fs::exists(status)) return {};
  if (!fs::is_regular_file(status)) {
    return Error{.where = path, .what = "cannot be replaced", .expected = "a regular file or none"};
  }
  bool is_input = false;
  for (const std::string& input : inputs) is_input = is_input || fs::equivalent(path, input, failed);
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    is_input = is_input || fs::equivalent(path, tensor.file, failed);
  }
  if (is_input) return Error{.where = path, .what = "is read by this command", .expected = "another output"};
  return {};
}

Result<void> replace_file(const std::string& path, const std::function<Result<void>(const std::string&)>& write) {
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  Result<void> written = write(temporary);
  std::error_code failed;
  if (written) fs::rename(temporary, path, failed);
  if (failed) written = Error{.where = path, .what = "cannot replace: " + failed.message()};
  if (!written) fs::remove(temporary, failed);
  return written;
}

}  // namespace lily::cli
