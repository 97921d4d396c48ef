#include <gtest/gtest.h>

#include <random>

#include "support/byte_tokenizer.h"
#include "support/constraint_walk.h"
#include "text/token_constraint.h"

namespace lily {
namespace {

const Tokenizer& tokenizer() {
  static const Tokenizer made =
      test::byte_tokenizer({"<tool", "_call>", "<function=", "</parameter>", "</parameter", ">\n", "\n</", "</", "\n<",
                            "parameter=", "=a>", "12", "\xC3\xA9", "\n\n", "</function>\n", "\"}", "{\""});
  return made;
}

std::shared_ptr<const VocabularyTrie> trie() {
  static const auto made = make_vocabulary_trie(tokenizer());
  return made;
}

OrderedJson tool(std::string_view name, std::string_view parameters) {
  return {{"type", "function"}, {"function", {{"name", name}, {"parameters", OrderedJson::parse(parameters)}}}};
}

const OrderedJson& read_tool() {
  static const OrderedJson made = tool("read", R"({"type":"object","properties":{"path":{"type":"string"},
      "offset":{"type":"integer"},"limit":{"type":"integer","minimum":1},"mode":{"type":"string","enum":["text","bytes",""]},
      "where":{"type":"object"},"when":{"type":"string","format":"date","pattern":"x"},"odd":{"type":"integer","not":{}},
      "free":{}},"required":["path"]})");
  return made;
}

std::unique_ptr<TokenConstraint> constraint_of(const std::vector<OrderedJson>& tools, bool parallel = false) {
  auto made = call_constraint(trie(), tools, parallel);
  if (made) return std::move(made).value();
  ADD_FAILURE() << made.error().message();
  return nullptr;
}

bool accepts(std::string_view text, bool parallel = false) {
  const auto constraint = constraint_of({read_tool(), tool("stop", R"({"type":"object","properties":{}})")}, parallel);
  return test::accepts_prefix(*constraint, text) && constraint->complete();
}

using Arguments = std::vector<std::pair<std::string, std::string>>;

std::string call(const std::string& name, const Arguments& arguments) {
  std::string text = "<tool_call>\n<function=" + name + ">\n";
  for (const auto& [key, value] : arguments) text += "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
  return text + "</function>\n</tool_call>";
}

TEST(CallConstraint, TC_01_ParametersInAnyOrder) {
  Arguments arguments = {{"limit", "5"}, {"offset", "-7"}, {"path", "a.txt"}};
  do {
    EXPECT_TRUE(accepts(call("read", arguments))) << call("read", arguments);
  } while (std::next_permutation(arguments.begin(), arguments.end()));
  EXPECT_TRUE(accepts("\n\n" + call("read", {{"limit", "5"}, {"path", "a.txt"}}) + "\n"));
}

TEST(CallConstraint, EachParameterOnceAndRequiredOnesAlways) {
  EXPECT_TRUE(accepts(call("read", {{"path", "x"}})));
  EXPECT_TRUE(accepts(call("stop", {})));
  EXPECT_FALSE(accepts(call("read", {})));
  EXPECT_FALSE(accepts(call("read", {{"limit", "5"}})));
  EXPECT_FALSE(accepts(call("read", {{"path", "x"}, {"path", "y"}})));
  EXPECT_FALSE(accepts(call("read", {{"path", "x"}, {"size", "5"}})));
  EXPECT_FALSE(accepts(call("write", {{"path", "x"}})));
  EXPECT_FALSE(accepts(call("stop", {{"path", "x"}})));
  EXPECT_FALSE(accepts("I will look.\n" + call("stop", {})));
}

TEST(CallConstraint, ValuesFollowTheirSchema) {
  const auto value = [](const char* key, const char* text) {
    return accepts(call("read", {{key, text}, {std::string(key) == "path" ? "limit" : "path", "1"}}));
  };
  for (const char* text :
       {"", "a\n\nb", "\"quoted\"", "x</parameter>", "\n x </parameter>", "<tool_call>\n<function=", "\xC3\xA9\t"}) {
    EXPECT_TRUE(value("path", text)) << text;
    EXPECT_TRUE(value("free", text)) << text;
    EXPECT_TRUE(value("when", text)) << text;
  }
  EXPECT_FALSE(value("path", "\xFF"));
  EXPECT_FALSE(value("path", "</parameter>x"));  // ends the empty value
  EXPECT_FALSE(value("path", "a\n</parameter>\nb"));
  EXPECT_TRUE(value("mode", "text"));
  EXPECT_TRUE(value("mode", ""));
  EXPECT_FALSE(value("mode", "\"text\""));
  EXPECT_FALSE(value("mode", "texts"));
  EXPECT_TRUE(value("limit", "12"));
  EXPECT_FALSE(value("limit", "0"));
  EXPECT_FALSE(value("limit", "five"));
  EXPECT_TRUE(value("odd", "-3"));  // its schema is outside the subset, its type is not
  EXPECT_FALSE(value("odd", "x"));
  EXPECT_TRUE(value("where", "{\"a\": [1, \"\\n</parameter>\"]}"));
  EXPECT_FALSE(value("where", "[1]"));
  EXPECT_TRUE(accepts("<tool_call>\n<function=read>\n<parameter=path>\n</parameter>\n</function>\n</tool_call>"));
}

TEST(CallConstraint, SeveralCallsOnlyWhereParallel) {
  const std::string one = call("read", {{"path", "x"}}),
                    two = one + "\n" + call("read", {{"path", "y"}, {"limit", "1"}});
  EXPECT_TRUE(accepts(two, true));
  EXPECT_TRUE(accepts(one, true));
  EXPECT_FALSE(accepts(two, false));
  EXPECT_FALSE(accepts("", true));
  EXPECT_FALSE(accepts(one + " x", true));
}

TEST(CallConstraint, RandomRepliesAreCallsAndAllowedIsWhatAcceptTakes) {
  std::mt19937 random(3);
  const auto constraint = constraint_of({read_tool(), tool("stop", "{}")}, true);
  for (int i = 0; i < 100; ++i) {
    auto walk = constraint->clone();
    const auto text = test::random_reply(*walk, tokenizer(), random, 3 * i);
    ASSERT_TRUE(text) << i;
    ASSERT_TRUE(text->find("<tool_call>\n<function=") != std::string::npos) << *text;
    ASSERT_TRUE(test::accepts_prefix(*constraint->clone(), *text)) << *text;
  }
  for (int i = 0; i < 10; ++i) {
    auto walk = constraint->clone();
    for (int step = 0; step < 150; ++step) {
      TokenSet ids(tokenizer().size());
      walk->allowed(ids);
      for (int32_t id = 0; id < tokenizer().size(); ++id) {
        ASSERT_EQ(ids.has(id), walk->clone()->accept(id)) << id << " step " << step;
      }
      const auto list = test::allowed_ids(*walk, tokenizer());
      if (list.empty()) break;
      ASSERT_TRUE(walk->accept(list[random() % list.size()]));
    }
  }
}

// The real vocabulary has the tags as single tokens; they are tags only where one may stand.
TEST(CallConstraint, TagsMayBeAddedTokens) {
  const auto tiny = Tokenizer::load(std::string(LILY_SOURCE_DIR) + "/models/tiny/tokenizer.json");
  ASSERT_TRUE(tiny);
  const int32_t open = *tiny->added_token("<tool_call>"), close = *tiny->added_token("</tool_call>");
  const std::vector<OrderedJson> tools = {read_tool()};
  auto made = call_constraint(make_vocabulary_trie(*tiny), tools, false);
  ASSERT_TRUE(made);
  TokenConstraint& constraint = **made;
  TokenSet ids(tiny->size());
  const auto expect = [&](bool opens, bool closes) {
    constraint.allowed(ids);
    EXPECT_EQ(ids.has(open), opens);
    EXPECT_EQ(ids.has(close), closes);
    EXPECT_EQ(constraint.clone()->accept(open), opens);
    EXPECT_EQ(constraint.clone()->accept(close), closes);
  };
  const auto push = [&](std::string_view text) {
    for (const int32_t id : tiny->encode(text)) ASSERT_TRUE(constraint.accept(id)) << text << " " << tiny->bytes_of(id);
  };
  expect(true, false);
  push("\n\n");
  expect(true, false);
  ASSERT_TRUE(constraint.accept(open));
  expect(false, false);
  push("\n<function=read>\n<parameter=path>\n");
  expect(false, false);
  push("some text");
  expect(false, false);
  push("\n</parameter>\n</function>\n");
  expect(false, true);
  ASSERT_TRUE(constraint.accept(close));
  EXPECT_TRUE(constraint.complete());
  expect(false, false);
  auto spelled = call_constraint(make_vocabulary_trie(*tiny), tools, false);
  for (const int32_t id : tiny->encode(call("read", {{"path", "x"}}))) ASSERT_TRUE((*spelled)->accept(id));
  EXPECT_TRUE((*spelled)->complete());
}

TEST(CallConstraint, RandomRepliesOfTheBundledTokenizer) {
  const auto tiny = Tokenizer::load(std::string(LILY_SOURCE_DIR) + "/models/tiny/tokenizer.json");
  ASSERT_TRUE(tiny);
  const auto shared = make_vocabulary_trie(*tiny);
  const auto json = json_constraint(shared, nullptr);
  const std::vector<OrderedJson> tools = {read_tool()};
  const auto calls = call_constraint(shared, tools, true);
  std::mt19937 random(4);
  for (int i = 0; i < 40; ++i) {
    const auto text = test::random_reply(*(*json)->clone(), *tiny, random, i);
    ASSERT_TRUE(text);
    ASSERT_TRUE(OrderedJson::accept(*text)) << *text;
    ASSERT_TRUE(test::random_reply(*(*calls)->clone(), *tiny, random, i));
  }
}

TEST(CallConstraint, ErrorsNameTheTool) {
  const auto error = [](const std::vector<OrderedJson>& tools) {
    const auto made = call_constraint(trie(), tools, false);
    return made ? "" : made.error().where;
  };
  EXPECT_EQ(error({}), "tools");
  EXPECT_EQ(error({tool("a", "{}"), tool("b>\n", "{}")}), "tools.1.function.name");
  EXPECT_EQ(error({OrderedJson()}), "tools.0.function.name");
  OrderedJson many = {{"properties", OrderedJson::object()}};
  for (int i = 0; i < 300; ++i) many["properties"][std::to_string(i)] = true;
  EXPECT_EQ(error({tool("a", many.dump())}), "tools.0.function.parameters");
}

// Whatever a schema is, its tool can be called.
TEST(CallConstraint, OddSchemasFallBack) {
  for (const char* parameters :
       {"null", "[]", "{}", "true", R"({"properties":[]})", R"({"properties":{"a":null}})",
        R"({"properties":{"a":false}})", R"({"properties":{"a":{"type":"array","items":false,"minItems":1}}})",
        R"({"properties":{"a":{"type":["integer",3]}}})", R"({"properties":{"a":{"type":"datetime"}}})",
        R"({"properties":{"a":{"$ref":"#/nowhere"}}})", R"({"properties":{"a":{"$ref":"#/properties/a"}}})",
        R"({"properties":{"a":{"type":"integer","enum":[]}}})",
        R"({"properties":{"a":{"type":"object","patternProperties":{}}},"required":["a","b"]})"}) {
    std::mt19937 random(5);
    const auto constraint = constraint_of({tool("f", parameters)});
    ASSERT_NE(constraint, nullptr) << parameters;
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(test::random_reply(*constraint->clone(), tokenizer(), random, 5 * i)) << parameters;
  }
}

}  // namespace
}  // namespace lily
