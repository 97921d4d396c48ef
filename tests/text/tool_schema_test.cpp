#include "text/tool_schema.h"

#include <gtest/gtest.h>

#include "text/python_literal.h"

namespace lily {
namespace {

// The argument's JSON, where the parameter has this schema.
std::string converted(const std::string& text, const std::string& schema, const std::string& definitions = "{}") {
  const OrderedJson parameters = {{"type", "object"},
                                  {"properties", {{"p", OrderedJson::parse(schema)}}},
                                  {"$defs", OrderedJson::parse(definitions)}};
  const std::vector<OrderedJson> tools = {
      {{"type", "function"}, {"function", {{"name", "f"}, {"parameters", parameters}}}}};
  return argument_json(text, ToolSchemas(tools).type_of("f", "p"));
}

TEST(ToolSchema, SimpleTypes) {
  EXPECT_EQ(converted("123", R"({"type":"string"})"), R"("123")");
  EXPECT_EQ(converted("a\"\\\n\x01é", R"({"type":"string"})"), "\"a\\\"\\\\\\n\\u0001é\"");
  EXPECT_EQ(converted("123", R"({"type":"integer"})"), "123");
  EXPECT_EQ(converted(" -7\n", R"({"type":"integer"})"), "-7");
  EXPECT_EQ(converted("007", R"({"type":"integer"})"), "7");
  EXPECT_EQ(converted("5.0", R"({"type":"int64"})"), "5");
  EXPECT_EQ(converted("123456789012345678901234567890", R"({"type":"integer"})"), "123456789012345678901234567890");
  EXPECT_EQ(converted("5.5", R"({"type":"integer"})"), R"("5.5")");
  EXPECT_EQ(converted("1.50", R"({"type":"number"})"), "1.50");
  EXPECT_EQ(converted(".5", R"({"type":"number"})"), "0.5");
  EXPECT_EQ(converted("nan", R"({"type":"number"})"), R"("nan")");
  EXPECT_EQ(converted("True", R"({"type":"boolean"})"), "true");
  EXPECT_EQ(converted("yes", R"({"type":"boolean"})"), R"("yes")");
  EXPECT_EQ(converted("[1, 2]", R"({"type":"array"})"), "[1, 2]");
  EXPECT_EQ(converted("{\"a\": {}}", R"({"type":"object"})"), "{\"a\": {}}");
  EXPECT_EQ(converted("[1]", R"({"type":"object"})"), R"("[1]")");
  EXPECT_EQ(converted("null", R"({"type":"integer"})"), R"("null")");
}

TEST(ToolSchema, TC_07_PythonLiterals) {
  EXPECT_EQ(converted("{'k': 'v', 'ok': True, 'n': None}", R"({"type":"object"})"), R"({"k":"v","ok":true,"n":null})");
  EXPECT_EQ(converted("('a', \"it's\", -1.5,)", R"({"type":"array"})"), R"(["a","it's",-1.5])");
  EXPECT_EQ(json_of_python(R"(['\'', '\n\x41\u00e9\ud83d\ude42\q', {1: {}}, []])"),
            R"(["'","\nAé🙂\\q",{"1":{}},[]])");
  for (const std::string text : {"{", "{'a'}", "{'a': }", "[1 2]", "f()", "{'a': 1} x", "'open", "[1,,2]", "{,}", ""}) {
    EXPECT_FALSE(json_of_python(text)) << text;
  }
  EXPECT_FALSE(json_of_python(std::string(100'000, '[')));
}

TEST(ToolSchema, TC_08_OddOrMissingTypes) {
  for (const char* schema :
       {"{}", R"({"type":"datetime"})", R"({"type":["string","integer"]})", R"({"description":"when"})",
        R"({"type":"integer"})", R"({"type":["integer","null"]})", R"({"type":"object"})",
        R"({"type":["array","number"]})", R"({"type":"boolean"})", R"({"type":7})", "true", "null"}) {
    EXPECT_EQ(converted("2026-01-15T10:00:00Z", schema), R"("2026-01-15T10:00:00Z")") << schema;
    EXPECT_EQ(converted("call me at 5", schema), R"("call me at 5")") << schema;
  }
  EXPECT_EQ(argument_json("5", ToolSchemas({}).type_of("f", "p")), R"("5")");
}

TEST(ToolSchema, TC_10_TextForAnObject) {
  const std::string shell = "if [ -f \"$a\" ]; then { echo '\\n'; }; fi\n";
  EXPECT_EQ(OrderedJson::parse(converted(shell, R"({"type":"object"})")), OrderedJson(shell));
  EXPECT_EQ(OrderedJson::parse(converted("{" + shell, R"({"type":"object"})")), OrderedJson("{" + shell));
}

TEST(ToolSchema, TC_17_Alternatives) {
  for (const char* schema : {R"({"anyOf":[{"type":"string"},{"type":"null"}]})", R"({"type":["string","null"]})",
                             R"({"oneOf":[{"type":"null"},{"type":"string"}]})", R"({"$ref":"#/$defs/Text"})",
                             R"({"type":"string","nullable":true})", R"({"enum":["a",null]})",
                             R"({"anyOf":[{"$ref":"#/$defs/Text"},{"type":"integer"}]})"}) {
    const std::string definitions = R"({"Text":{"type":["string","null"]}})";
    EXPECT_EQ(converted("123", schema, definitions), R"("123")") << schema;
    EXPECT_EQ(converted("true", schema, definitions), R"("true")") << schema;
    EXPECT_EQ(converted("null", schema, definitions), "null") << schema;
    EXPECT_EQ(converted("{\"a\":1}", schema, definitions), R"("{\"a\":1}")") << schema;
    EXPECT_EQ(converted("", schema, definitions), R"("")") << schema;
  }
  EXPECT_EQ(converted("null", R"({"type":"string"})"), R"("null")");
  EXPECT_EQ(converted("3", R"({"anyOf":[{"type":"integer"},{"type":"null"}]})"), "3");
  EXPECT_EQ(converted("None", R"({"anyOf":[{"type":"integer"},{"type":"null"}]})"), "null");
  EXPECT_EQ(converted("3", R"({"enum":[1,2,3]})"), "3");
  EXPECT_EQ(converted("a", R"({"enum":["a","b"]})"), R"("a")");
  EXPECT_EQ(converted("1", R"({"enum":[1,"auto"]})"), "1");
  EXPECT_EQ(converted("1", R"({"enum":["1","auto",2]})"), R"("1")");
  EXPECT_EQ(converted("auto", R"({"enum":[1,"auto"]})"), R"("auto")");
  EXPECT_EQ(converted("{\"x\":1}", R"({"$ref":"#/$defs/a~1b"})", R"({"a/b":{"properties":{}}})"), "{\"x\":1}");
  EXPECT_EQ(converted("4", R"({"allOf":[{"$ref":"#/$defs/N"},{"description":"x"}]})", R"({"N":{"type":"number"}})"),
            "4");
  EXPECT_EQ(converted("5", R"({"$ref":"#/$defs/Nowhere"})"), R"("5")");
}

TEST(ToolSchema, ReferencesInCirclesEnd) {
  EXPECT_EQ(converted("5", R"({"$ref":"#/$defs/A"})", R"({"A":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}]}})"),
            R"("5")");
}

}  // namespace
}  // namespace lily
