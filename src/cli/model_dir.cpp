#include "cli/model_dir.h"

#include <filesystem>
#include <system_error>
#ifdef __APPLE__
#include <mach-o/dyld.h>

#include <vector>
#endif

#include "base/mapped_file.h"
#include "base/paths.h"

namespace lily::cli {
namespace {

namespace fs = std::filesystem;

// Links resolved, so that a link to the program in ~/bin still finds the model beside the program. Empty if unknown.
fs::path executable_path() {
  std::error_code failed;
#ifdef __APPLE__
  uint32_t size = 0;
  ::_NSGetExecutablePath(nullptr, &size);
  std::vector<char> path(size + 1);
  if (::_NSGetExecutablePath(path.data(), &size) != 0) return {};
  return fs::canonical(path.data(), failed);
#else
  return fs::canonical("/proc/self/exe", failed);
#endif
}

bool holds_model(const fs::path& directory) {
  std::error_code failed;
  return fs::exists(directory / "config.json", failed);
}

std::string last_pulled_model() {
  const Result<std::string> text = read_file(last_model_file());
  return text ? text->substr(0, text->find_first_of("\r\n")) : "";
}

std::string bundled_model() {
  const fs::path bin = executable_path().parent_path();
  // The source tree's build/<preset>/bin, then an installation's <prefix>/bin.
  for (const char* place : {"../../../models/tiny", "../share/lily/models/tiny"}) {
    if (const fs::path directory = bin / place; holds_model(directory)) return directory.lexically_normal().string();
  }
  return "";
}

Error missing(const std::string& where, const std::string& directory) {
  return {.where = where, .what = "no model there", .expected = "a directory with config.json", .got = directory};
}

}  // namespace

Result<std::string> find_model(const std::string& given) {
  if (!given.empty()) return holds_model(given) ? Result<std::string>(given) : missing("--model", given);
  if (const std::string named = environment("LILY_MODEL"); !named.empty()) {
    return holds_model(named) ? Result<std::string>(named) : missing("LILY_MODEL", named);
  }
  // A pulled model that was moved away since is said, not silently replaced by a much smaller one.
  if (const std::string pulled = last_pulled_model(); !pulled.empty()) {
    return holds_model(pulled) ? Result<std::string>(pulled) : missing(last_model_file(), pulled);
  }
  if (const std::string bundled = bundled_model(); !bundled.empty()) return bundled;
  return Error{.where = "model",
               .what = "none given and none found",
               .expected = "-m DIR, $LILY_MODEL, a model from `lily pull`, or the bundled one"};
}

}  // namespace lily::cli
