// Every #include in src/ follows the arrows of docs/architecture.md: its table of rooms is the list.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

#include "house/repository.h"

namespace lily::house {
namespace {

using Rooms = std::map<std::string, std::set<std::string>>;  // room -> rooms that it may include, itself among them

// Rows such as "| `text` | `base` | bytes, ids, messages |" below the heading "| room | may include | ...".
Rooms parse_rooms(const std::string& markdown) {
  static const std::regex row(R"(\| `(\w+)` \|([^|]*)\|.*)");
  static const std::regex name(R"(`(\w+)`)");
  Rooms rooms;
  bool in_table = false;
  for (const std::string& line : split_lines(markdown)) {
    if (line.starts_with("| room | may include |")) in_table = true;
    if (!line.starts_with("|")) in_table = false;
    std::smatch match;
    if (!in_table || !std::regex_match(line, match, row)) continue;
    const std::string allowed = match.str(2);
    std::set<std::string>& room = rooms[match.str(1)];
    room.insert(match.str(1));
    for (std::sregex_iterator i(allowed.begin(), allowed.end(), name), end; i != end; ++i) room.insert(i->str(1));
  }
  return rooms;
}

std::string room_of(const std::string& path) { return path.substr(0, path.find('/')); }

// The includes of one source of `room` that break the rules: a quoted one that does not start with an allowed room, or one
// of another room in angle brackets.
std::vector<std::string> forbidden_includes(const Rooms& rooms, const std::string& room, const std::string& source) {
  static const std::regex include(R"(\s*#\s*(?:include|import)\s*(["<])([^">]+)[">].*)");
  const auto allowed = rooms.find(room);
  std::vector<std::string> found;
  for (const std::string& line : split_lines(source)) {
    std::smatch match;
    if (!std::regex_match(line, match, include)) continue;
    const std::string target = room_of(match.str(2));
    const bool ours = match.str(1) == "\"" || rooms.contains(target);
    if (ours && (allowed == rooms.end() || !allowed->second.contains(target))) found.push_back(line);
  }
  return found;
}

Rooms documented_rooms() { return parse_rooms(read(root() / "docs/architecture.md")); }

TEST(Arrows, EveryRoomIsDocumented) {
  const Rooms rooms = documented_rooms();
  for (const auto& entry : fs::directory_iterator(root() / "src")) {
    if (!entry.is_directory()) continue;
    const std::string room = entry.path().filename().string();
    EXPECT_TRUE(rooms.contains(room)) << "src/" << room << " has no row in docs/architecture.md";
  }
  for (const auto& [room, allowed] : rooms) {
    EXPECT_TRUE(fs::is_directory(root() / "src" / room))
        << "docs/architecture.md lists a room without a folder: " << room;
    for (const std::string& below : allowed) {
      EXPECT_TRUE(rooms.contains(below)) << room << " -> " << below;
      EXPECT_TRUE(below == room || !rooms.at(below).contains(room)) << room << " <-> " << below;
    }
  }
}

TEST(Arrows, EveryIncludeFollowsThem) {
  const Rooms rooms = documented_rooms();
  for (const std::string& path : files()) {
    if (!path.starts_with("src/") || !is_cpp(path)) continue;
    const std::string room = room_of(path.substr(4));
    for (const std::string& line : forbidden_includes(rooms, room, read(root() / path))) {
      ADD_FAILURE() << path << " breaks the arrows of docs/architecture.md: " << line;
    }
  }
}

// The linker would accept what the includes do not show, so the libraries follow the same list.
TEST(Arrows, EveryLinkFollowsThem) {
  static const std::regex library(R"(\blily_(\w+))");
  for (const auto& [room, allowed] : documented_rooms()) {
    for (const std::string& line : split_lines(read(root() / "src" / room / "CMakeLists.txt"))) {
      if (!line.starts_with("lily_room(")) continue;
      const std::string links = line.substr(line.find('('));
      for (std::sregex_iterator i(links.begin(), links.end(), library), end; i != end; ++i) {
        EXPECT_TRUE(allowed.contains(i->str(1))) << "src/" << room << "/CMakeLists.txt links " << i->str();
      }
    }
  }
}

TEST(Arrows, SeesAPlantedBreach) {
  const Rooms rooms = parse_rooms(
      "| room | may include | purpose |\n"
      "|---|---|---|\n"
      "| `base` | | types |\n"
      "| `text` | `base` | ids, not `model` |\n"
      "\n"
      "| `model` | `base` | of another table |\n");
  EXPECT_EQ(rooms, (Rooms{{"base", {"base"}}, {"text", {"base", "text"}}}));
  EXPECT_TRUE(
      forbidden_includes(rooms, "text", "#include <string>\n#include \"base/a.h\"\n#include \"text/b.h\"").empty());
  EXPECT_EQ(forbidden_includes(rooms, "base", "  # include \"text/b.h\"").size(), 1u);
  EXPECT_EQ(forbidden_includes(rooms, "base", "#include <text/b.h>").size(), 1u);
  EXPECT_EQ(forbidden_includes(rooms, "text", "#include \"model/c.h\"").size(), 1u);
  EXPECT_EQ(forbidden_includes(rooms, "text", "#include \"b.h\"").size(), 1u);
  EXPECT_EQ(forbidden_includes(rooms, "hall", "#include \"base/a.h\"").size(), 1u);
}

}  // namespace
}  // namespace lily::house
