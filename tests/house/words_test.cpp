// Nothing in the repository depends on the machine it was written on.
#include <gtest/gtest.h>

#include <regex>

#include "house/repository.h"

namespace lily::house {
namespace {

// Absolute paths of somebody's machine, and hosts of package registries: which mirror a machine uses is its own affair.
const std::regex& forbidden() {
  static const std::regex words(
      R"((^|[\s"'`(=:])/(work|root|home|Users)/\w|\w\.debian\.org|pypi\.org|pythonhosted\.org|npmjs\.org|pkg\.dev)");
  return words;
}

std::vector<int> lines_with_forbidden_words(const std::string& text) {
  std::vector<int> found;
  int number = 0;
  for (const std::string& line : split_lines(text)) {
    ++number;
    if (line.size() < 2000 && std::regex_search(line, forbidden())) found.push_back(number);
  }
  return found;
}

bool is_text(const std::string& path) {
  return is_cpp(path) || !fs::path(path).has_extension() ||
         has_extension(path, {".md", ".py", ".txt", ".cmake", ".json", ".yml", ".toml", ".sh", ".in", ".html", ".js"});
}

TEST(Words, NoMachinePathAndNoRegistryHost) {
  for (const std::string& path : files()) {
    if (!is_text(path) || path.starts_with("models/")) continue;
    for (const int line : lines_with_forbidden_words(read(root() / path))) ADD_FAILURE() << path << ":" << line;
  }
}

TEST(Words, SeesPlantedOnes) {
  const std::string slash = "/";
  EXPECT_EQ(lines_with_forbidden_words("fine\n cd " + slash + "work/main\n"), std::vector<int>{2});
  EXPECT_EQ(lines_with_forbidden_words('"' + slash + "Users/ada\""), std::vector<int>{1});
  EXPECT_EQ(lines_with_forbidden_words("from https://deb.debian" + std::string(".org")), std::vector<int>{1});
  EXPECT_TRUE(lines_with_forbidden_words("frame/work/s, ../home/x, debian:12").empty());
}

}  // namespace
}  // namespace lily::house
