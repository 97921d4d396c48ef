// Nothing in the repository depends on the machine it was written on.
#include <gtest/gtest.h>

#include <regex>

#include "house/repository.h"

namespace lily::house {
namespace {

// Home folders and the like, and hosts of package registries: which mirror a machine uses is its own affair.
// In two parts each, so that this file does not hold them itself.
const std::regex& forbidden() {
  static const std::regex words(
      "(^|[\\s\"'`(=:])/(wor" "k|roo" "t|hom" "e|User" "s)/\\w|"
      "(deb|security|snapshot|ftp)\\.debia" "n\\.org|pyp" "i\\.org|pythonhoste" "d\\.org|npmj" "s\\.org|"
      "packages\\.cloud\\.googl" "e|artifac" "tory|pkg\\.de" "v");
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

TEST(Words, SeesThePlantedOnes) {
  EXPECT_EQ(lines_with_forbidden_words("fine\n cd /wor" "k/main\n"), std::vector<int>{2});
  EXPECT_EQ(lines_with_forbidden_words("\"/User" "s/ada/lily\""), std::vector<int>{1});
  EXPECT_EQ(lines_with_forbidden_words("from http://deb.debia" "n.org/debian"), std::vector<int>{1});
  EXPECT_TRUE(lines_with_forbidden_words("frame/work/s, ../hom" "e/x, debian:12").empty());
}

}  // namespace
}  // namespace lily::house
