#include "server/wire.h"

#include <gtest/gtest.h>

#include "base/stopwatch.h"

namespace lily::server {
namespace {

// {"0":1,"1":1,...}
std::string object_of(int keys) {
  std::string text = "{";
  for (int i = 0; i < keys; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
  return text + "}";
}

TEST(Wire, ManyKeysAreRefusedBeforeTheyAreCompared) {
  const Stopwatch watch;
  for (const std::string& text : {object_of(1'000'000), "[{\"a\":" + object_of(100'000) + "}]"}) {
    const auto parsed = parse_json(text);
    ASSERT_TRUE(std::holds_alternative<std::string>(parsed));
    EXPECT_NE(std::get<std::string>(parsed).find("too many keys"), std::string::npos);
  }
  EXPECT_LT(watch.seconds(), 10) << "a million keys would take minutes";
}

TEST(Wire, ManySmallValuesAreRefusedBeforeTheyTakeMemory) {
  std::string list = "[1";
  for (int i = 0; i < 1'000'000; ++i) list += ",1";
  EXPECT_EQ(std::get<std::string>(parse_json(list + "]")), "JSON has too many values");
}

TEST(Wire, KeysOfManyObjectsAddUp) {
  std::string list = "[";
  for (int i = 0; i < 10; ++i) list += object_of(10'000) + ",";
  list += "0]";
  EXPECT_TRUE(std::holds_alternative<std::string>(parse_json(list)));
}

TEST(Wire, AsManyKeysAsAnyoneNeedsAreFine) {
  EXPECT_TRUE(std::holds_alternative<OrderedJson>(parse_json(object_of(10'000))));
  std::string list = "[";
  for (int i = 0; i < 100'000; ++i) list += R"({"role":"user","content":"a: {b: [c: "},)";
  list += "0]";
  EXPECT_TRUE(std::holds_alternative<OrderedJson>(parse_json(list)));
  const std::string colons = "[\"" + std::string(1'000'000, ':') + "\"]";
  EXPECT_TRUE(std::holds_alternative<OrderedJson>(parse_json(colons)));
}

TEST(Wire, ShapeOfWhatIsNoJsonIsHarmless) {
  for (const char* text : {"", "]", "}}}}", ":::", "{]:}", "\"", "\"\\", "[\"\\", "{:::}"})
    EXPECT_EQ(check_shape(text), "");
}

}  // namespace
}  // namespace lily::server
