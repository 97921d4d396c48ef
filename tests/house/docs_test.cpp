// Every path, command, option and preset that the documents name exists, and every command is in the README.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "house/repository.h"

namespace lily::house {
namespace {

// What a document shows as code: spans in backticks, and the commands of fenced blocks.
std::vector<std::string> code_of(const std::string& markdown) {
  static const std::regex span("`([^`]+)`");
  static const std::regex command(R"(\s*(?:\$ )?((?:\./)?(?:lily|cmake|ctest|cpack|tools/\S+) .*))");
  std::vector<std::string> code;
  bool fenced = false;
  for (const std::string& line : split_lines(markdown)) {
    if (line.starts_with("```")) {
      fenced = !fenced;
      continue;
    }
    std::smatch match;
    if (fenced && std::regex_match(line, match, command)) code.push_back(match.str(1));
    for (std::sregex_iterator i(line.begin(), line.end(), span), end; !fenced && i != end; ++i)
      code.push_back(i->str(1));
  }
  return code;
}

std::vector<std::string> links_of(const std::string& markdown) {
  static const std::regex link(R"(\]\(([^)#]+)[^)]*\))");
  std::vector<std::string> targets;
  for (std::sregex_iterator i(markdown.begin(), markdown.end(), link), end; i != end; ++i) {
    if (i->str(1).find("://") == std::string::npos) targets.push_back(i->str(1));
  }
  return targets;
}

// Paths that a user or the build makes, not the repository.
bool is_elsewhere(const std::string& path) {
  static const std::regex elsewhere(R"((\.\./|/|~|\$|build/|share/|bin/).*)");
  return std::regex_match(path, elsewhere);
}

// Told by an end such as "/" or ".cpp", or by a first folder that there is. `text/html` is none.
bool is_path(const std::string& code) {
  static const std::regex shape(R"([\w.*{},<>/-]+)");
  static const std::regex known_end(R"(.*(/|\.(h|cpp|md|py|sh|cmake|yml)))");
  if (!std::regex_match(code, shape) || is_elsewhere(code)) return false;
  if (std::regex_match(code, known_end)) return true;
  const size_t slash = code.find('/');
  return slash != std::string::npos && fs::exists(root() / code.substr(0, slash));
}

// `a/{b,c}` stands for both, `*` and `<room>` for any name.
std::vector<std::regex> patterns_of(const std::string& path) {
  static const std::regex braces(R"((.*)\{([^}]*)\}(.*))");
  static const std::regex any(R"(\*|<\w+>)");
  std::smatch match;
  if (std::regex_match(path, match, braces)) {
    std::vector<std::regex> all;
    std::istringstream choices(match.str(2));
    for (std::string choice; std::getline(choices, choice, ',');) {
      for (const std::regex& pattern : patterns_of(match.str(1) + choice + match.str(3))) all.push_back(pattern);
    }
    return all;
  }
  const std::string escaped = std::regex_replace(path, std::regex(R"(\.)"), "\\.");
  const std::string tail = path.ends_with('/') ? ".*" : "(/.*)?";
  return {std::regex("(src/|.*/)?" + std::regex_replace(escaped, any, "[^/]*") + tail)};
}

bool exists(const std::string& path, const std::vector<std::string>& all) {
  for (const std::regex& pattern : patterns_of(path)) {
    const bool found =
        std::any_of(all.begin(), all.end(), [&](const auto& file) { return regex_match(file, pattern); });
    if (!found) return false;
  }
  return true;
}

// What `lily <command> --help` prints; of `test`, which is the script's, the script itself.
std::string help_of(const std::string& command) {
  if (command == "test") return read(root() / "lily");
  return output_of(std::string(LILY_BINARY) + " " + command + " --help");
}

std::set<std::string> subcommands(const std::string& command = "") {
  static const std::regex entry(R"(\s+([a-z]+)\s.*)");
  std::set<std::string> names;
  bool listed = false;
  for (const std::string& line : split_lines(help_of(command))) {
    std::smatch match;
    if (listed && std::regex_match(line, match, entry)) names.insert(match.str(1));
    if (line.starts_with("Subcommands")) listed = true;
  }
  if (command.empty()) names.insert("test");
  return names;
}

std::string preset_fault(const std::string& line) {
  static const std::regex preset(R"(.*--preset[ =](\w+).*)");
  std::smatch match;
  if (!std::regex_match(line, match, preset)) return "";
  const bool known = read(root() / "CMakePresets.json").find("\"name\": \"" + match.str(1) + "\"") != std::string::npos;
  return known ? "" : "no preset " + match.str(1);
}

// What is wrong with a line such as `./lily generate --prompt "x" | less`; empty when nothing is, or when it is no command.
std::string fault_of(const std::string& line) {
  static const std::regex lily(R"((?:\./)?lily((?: [a-z]+)+)(.*))");
  static const std::regex quoted(R"("[^"]*"|'[^']*')");
  static const std::regex option(R"([\s(\[|](--?[a-z][\w-]*))");
  if (line.starts_with("cmake ")) return preset_fault(line);
  std::smatch match;
  if (!std::regex_match(line, match, lily)) return "";
  std::string command;
  std::istringstream words(match.str(1));
  for (std::string word; words >> word;) {
    const std::set<std::string> known = subcommands(command);
    if (known.empty()) break;  // a word for the command itself
    if (!known.contains(word)) return "no command " + word;
    command += (command.empty() ? "" : " ") + word;
  }
  const std::string help = help_of(command);
  const std::string arguments = std::regex_replace(match.str(2), quoted, "TEXT");
  for (std::sregex_iterator i(arguments.begin(), arguments.end(), option), end; i != end; ++i) {
    const std::regex word("(^|[\\s,\\[])" + i->str(1) + "([\\s,=\\]]|$)");
    if (!std::regex_search(help, word)) return command + " has no option " + i->str(1);
  }
  return "";
}

// The log is left out: it tells what was, and keeps it.
std::vector<std::string> documents() {
  std::vector<std::string> paths;
  for (const std::string& path : files()) {
    const bool prose =
        path == "README.md" || path == "AGENTS.md" || (path.starts_with("docs/") && path.ends_with(".md"));
    if (prose && path != "docs/log.md") paths.push_back(path);
  }
  return paths;
}

TEST(Docs, EveryPathExists) {
  const std::vector<std::string> all = files();
  for (const std::string& document : documents()) {
    const std::string text = read(root() / document);
    for (const std::string& code : code_of(text)) {
      EXPECT_TRUE(!is_path(code) || exists(code, all)) << document << " names " << code;
    }
    for (const std::string& link : links_of(text)) {
      EXPECT_TRUE(fs::exists((root() / document).parent_path() / link)) << document << " links to " << link;
    }
  }
}

TEST(Docs, EveryCommandExists) {
  for (const std::string& document : documents()) {
    for (const std::string& code : code_of(read(root() / document))) {
      EXPECT_EQ(fault_of(code), "") << document << ": " << code;
    }
  }
}

TEST(Docs, EveryCommandIsInTheReadme) {
  const std::string readme = read(root() / "README.md");
  for (const std::string& command : subcommands()) {
    EXPECT_NE(readme.find("lily " + command), std::string::npos) << command;
  }
}

TEST(Docs, SeesPlantedFaults) {
  const std::vector<std::string> all = {"docs/log.md", "src/base/result.h", "src/cli/main/main.cpp"};
  for (const char* there :
       {"docs/log.md", "src/base/", "base/result.h", "result.h", "src/{base,cli}/", "src/<room>/*.h"}) {
    EXPECT_TRUE(is_path(there) && exists(there, all)) << there;
  }
  for (const char* absent : {"docs/logs.md", "scr/base/", "base/results.h", "esult.h", "src/{base,hall}/", "src/*.h"}) {
    EXPECT_TRUE(is_path(absent) && !exists(absent, all)) << absent;
  }
  for (const char* other : {"text/html", "owner/model", "a / b", "build/release/", "~/.cache/x.md", "and/or"}) {
    EXPECT_FALSE(is_path(other)) << other;
  }
  EXPECT_EQ(code_of("a `b` c\n```\n$ ./lily chat\nhello `d`\n```\n`e`"),
            (std::vector<std::string>{"b", "./lily chat", "e"}));
  EXPECT_EQ(links_of("[a](b.md#c) [d](https://e)"), std::vector<std::string>{"b.md"});
  EXPECT_EQ(fault_of("lily fly"), "no command fly");
  EXPECT_EQ(fault_of("./lily test --fast"), "test has no option --fast");
  EXPECT_EQ(fault_of("./lily test --slow"), "");
  EXPECT_EQ(fault_of("lily inspect DIR --jason"), "inspect has no option --jason");
  EXPECT_EQ(fault_of("lily eval logit"), "no command logit");
  EXPECT_EQ(fault_of("lily eval logits --tokens FILE | less"), "");
  EXPECT_EQ(fault_of("cmake --preset fast"), "no preset fast");
  EXPECT_EQ(fault_of("cmake --build --preset release"), "");
}

// docs/bug-cases.md: every report is the name of a test, or stands under "Not tested" with the reason.
TEST(Docs, EveryBugReportIsATest) {
  const std::string page = read(root() / "docs/bug-cases.md");
  const size_t not_tested = page.find("## Not tested");
  ASSERT_NE(not_tested, page.npos);
  std::string tests;
  for (const std::string& path : files()) {
    if (path.starts_with("tests/") && (path.ends_with(".cpp") || path.ends_with(".py"))) tests += read(root() / path);
  }
  static const std::regex row(R"(\n\| ([A-Z]{2})-([0-9]+) \|)");
  size_t reports = 0;
  for (std::sregex_iterator i(page.begin(), page.end(), row), end; i != end; ++i) {
    if (static_cast<size_t>(i->position()) > not_tested) break;
    ++reports;
    const std::string id = i->str(1) + "-" + i->str(2);
    const bool tested = tests.find(i->str(1) + "_" + i->str(2)) != tests.npos;
    const bool excused = page.find("| " + id + " |", not_tested) != page.npos;
    EXPECT_NE(tested, excused) << id << (tested ? " is tested after all" : " is no test");
  }
  EXPECT_EQ(reports, 86u);
}

}  // namespace
}  // namespace lily::house
