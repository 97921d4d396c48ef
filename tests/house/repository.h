// The files of the repository, as the tests of the house rules see them.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace lily::house {

namespace fs = std::filesystem;

inline fs::path root() { return LILY_SOURCE_DIR; }

inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What a command prints, stderr left out; empty when it cannot be run.
inline std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (!pipe) return output;
  char buffer[4096];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, count);
  ::pclose(pipe);
  return output;
}

// Paths relative to the root of all that is tracked or about to be. Where git cannot tell (a source archive), all files
// but build folders.
inline std::vector<std::string> files() {
  std::vector<std::string> paths;
  const std::string git = "git -c safe.directory='*' -C '" + root().string() + "' ls-files -co --exclude-standard";
  for (const std::string& path : split_lines(output_of(git))) {
    if (fs::is_regular_file(root() / path)) paths.push_back(path);
  }
  if (paths.empty()) {
    for (auto entry = fs::recursive_directory_iterator(root()); entry != fs::end(entry); ++entry) {
      const std::string path = fs::relative(entry->path(), root()).generic_string();
      if (path == "build" || path == ".git" || path == ".venv") entry.disable_recursion_pending();
      if (entry->is_regular_file()) paths.push_back(path);
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

inline bool has_extension(const std::string& path, std::initializer_list<std::string_view> extensions) {
  const std::string extension = fs::path(path).extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

inline bool is_cpp(const std::string& path) {
  return has_extension(path, {".cpp", ".h", ".cu", ".cuh", ".metal", ".mm"});
}

}  // namespace lily::house
