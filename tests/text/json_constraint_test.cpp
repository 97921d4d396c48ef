#include <gtest/gtest.h>

#include <random>

#include "support/byte_tokenizer.h"
#include "support/constraint_walk.h"
#include "support/schema_validator.h"
#include "text/token_constraint.h"

namespace lily {
namespace {

using test::random_reply;

const Tokenizer& tokenizer() {
  static const Tokenizer made =
      test::byte_tokenizer({"\":", "\": ", "{\"",  "\"}",  "\",",      "\", \"",   "},{",   "]}",        "\n\n",
                            "  ",  " \"a", "12",   "-1",   ".5",       "0.",       "e1",    "true",      "null",
                            "abc", "\\u",  "\\\"", "D83D", "\xC3\xA9", "\xE2\x82", "\xACx", "x\xF0\x9F", "</think>x"});
  return made;
}

std::shared_ptr<const VocabularyTrie> trie() {
  static const auto made = make_vocabulary_trie(tokenizer());
  return made;
}

std::unique_ptr<TokenConstraint> constraint_of(std::string_view schema) {
  const OrderedJson parsed = OrderedJson::parse(schema);
  auto made = json_constraint(trie(), &parsed);
  if (!made) {
    ADD_FAILURE() << schema << ": " << made.error().message();
    return nullptr;
  }
  return std::move(made).value();
}

bool accepts(std::string_view schema, std::string_view text) {
  const auto constraint = constraint_of(schema);
  return constraint && test::accepts_prefix(*constraint, text) && constraint->complete();
}

std::string error_of(std::string_view schema) {
  const OrderedJson parsed = OrderedJson::parse(schema);
  const auto made = json_constraint(trie(), &parsed);
  return made ? "" : made.error().message();
}

constexpr std::string_view schemas[] = {
    R"({})",
    R"({"type":"object"})",
    R"({"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"boolean"},"c\"d":{"type":"null"},"é":{}},
        "required":["ab"]})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"const":1}},"required":["a"],
        "additionalProperties":{"type":"string"}})",
    R"({"type":"object","required":["x","y"],"additionalProperties":{"type":"integer"}})",
    R"({"type":["string","null","integer"],"maxLength":5,"minLength":2,"minimum":-7,"maximum":12})",
    R"({"type":"array","items":{"type":"integer","minimum":95,"exclusiveMaximum":1234},"minItems":2,"maxItems":4})",
    R"({"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":{"type":"boolean"},"minItems":1})",
    R"({"type":"array","items":{"type":"number","minimum":-0.25,"maximum":1.5}})",
    R"({"type":"array","items":{"type":"number","exclusiveMinimum":0,"multipleOf":0.01}})",
    R"({"type":"array","items":{"type":"number","minimum":-1e3,"exclusiveMaximum":-2.5}})",
    R"({"type":"array","items":{"enum":["a","ab","a\"\n",1,10,1.5,null,true,{"k":[1]}]}})",
    R"({"anyOf":[{"type":"object","properties":{"t":{"const":"a"},"x":{"type":"integer"}},"required":["t","x"]},
                 {"type":"object","properties":{"t":{"const":"ab"},"y":{"type":"string"}},"required":["t"]}]})",
    R"({"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"number"},{"enum":["x","xy"]},{"type":"string"}]}})",
    R"({"$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},
        {"type":"null"}]}},"required":["v","next"],"additionalProperties":false}},"$ref":"#/$defs/node"})",
    R"({"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}}},"required":["kids"]})",
    R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
                 {"properties":{"b":{"type":"string","maxLength":3}},"required":["b"]}]})",
    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
        "anyOf":[{"required":["a"]},{"required":["b"]}]})",
    R"({"type":"object","properties":{"when":{"type":"string","format":"date","nullable":true,"x-order":1}}})",
};

TEST(JsonConstraint, RandomRepliesSatisfyTheSchema) {
  std::mt19937 random(1);
  for (const std::string_view schema : schemas) {
    const OrderedJson parsed = OrderedJson::parse(schema);
    const auto constraint = constraint_of(schema);
    ASSERT_NE(constraint, nullptr);
    for (int i = 0; i < 60; ++i) {
      auto walk = constraint->clone();
      const auto text = random_reply(*walk, tokenizer(), random, i);
      ASSERT_TRUE(text) << schema;
      const OrderedJson value = OrderedJson::parse(*text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << schema << "\n" << *text;
      ASSERT_TRUE(test::SchemaValidator(parsed).valid(value)) << schema << "\n" << *text;
    }
  }
}

// allowed(id) says exactly what accept(id) does, wherever a reply may stand.
TEST(JsonConstraint, AllowedIsWhatAcceptTakes) {
  std::mt19937 random(2);
  for (const std::string_view schema : schemas) {
    for (int i = 0; i < 3; ++i) {
      const auto constraint = constraint_of(schema);
      for (int step = 0; step < 25; ++step) {
        TokenSet ids(tokenizer().size());
        constraint->allowed(ids);
        for (int32_t id = 0; id < tokenizer().size(); ++id) {
          ASSERT_EQ(ids.has(id), constraint->clone()->accept(id)) << schema << " token " << id << " step " << step;
        }
        const auto list = test::allowed_ids(*constraint, tokenizer());
        if (list.empty()) break;
        ASSERT_TRUE(constraint->accept(list[random() % list.size()]));
      }
    }
  }
}

TEST(JsonConstraint, ARefusedTokenChangesNothing) {
  const auto constraint = constraint_of(R"({"type":"object","properties":{"a":{"type":"integer"}}})");
  ASSERT_TRUE(test::accepts_prefix(*constraint, "{\"a\": 1"));
  for (const int32_t id : {-1, 1 << 30, static_cast<int32_t>('x'), static_cast<int32_t>(tokenizer().size())}) {
    EXPECT_FALSE(constraint->accept(id));
  }
  EXPECT_TRUE(test::accepts_prefix(*constraint, "2}"));
  EXPECT_TRUE(constraint->complete());
}

// Every text of a small alphabet, against the parser and the validator.
TEST(JsonConstraint, AcceptsExactlyTheValidTextsOfASmallAlphabet) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"type":"integer"})", "-012."},
      {R"({"type":"integer","minimum":-11,"maximum":102})", "-012"},
      {R"({"type":"number","minimum":-1.1,"exclusiveMaximum":2})", "-012."},
      {R"({"type":"number","exclusiveMinimum":0.1})", "012."},
      {R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})", "[1],"},
      {R"({"type":"string","minLength":1,"maxLength":2})", "\"\\n\xC3\xA9"},
      {R"({"enum":[1,12,"1",[1]]})", "12\"[]"},
  };
  for (const auto& [schema, alphabet] : cases) {
    const OrderedJson parsed = OrderedJson::parse(schema);
    const test::SchemaValidator validator(parsed);
    std::vector<std::string> texts = {""};
    int accepted = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string text = texts[i];
      const OrderedJson value = OrderedJson::parse(text, nullptr, false);
      // Not written, though JSON: -0, and a fraction of an integer.
      const bool unusual = text.starts_with("-0") && value.is_number() && value.get<double>() == 0;
      const bool fraction = parsed.value("type", "") == "integer" && text.find('.') != text.npos;
      const bool right = !value.is_discarded() && !unusual && !fraction && validator.valid(value);
      ASSERT_EQ(accepts(schema, text), right) << schema << " " << text;
      accepted += right;
      for (const char c : alphabet) {
        if (text.size() < 5) texts.push_back(text + c);
      }
    }
    EXPECT_GT(accepted, 2) << schema;
  }
}

TEST(JsonConstraint, StringsAreWholeUtf8WithWholeEscapes) {
  const auto string = [](std::string_view inside) {
    return accepts(R"({"type":"string"})", "\"" + std::string(inside) + "\"");
  };
  for (const char* good : {"", "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\\\"\\\\\\/\\b\\f\\n\\r\\t",
                           "\\u00e9\\uD7FF\\uE000", "\\uD83D\\uDE00x", "\\ud83d\\ude00"}) {
    EXPECT_TRUE(string(good)) << good;
  }
  for (const char* bad : {"\n", "\t", "\x01", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\\x", "\\u12g4",
                          "\\uD83D", "\\uD83Dx", "\\uD83D\\n", "\\uD83D\\u0041", "\\uDE00", "\\uDE00\\uD83D"}) {
    EXPECT_FALSE(string(bad)) << bad;
  }
  EXPECT_TRUE(accepts(R"({"type":"string","maxLength":1})", "\"\\uD83D\\uDE00\""));
  EXPECT_FALSE(accepts(R"({"type":"string","maxLength":1})", "\"\\u0041\\u0041\""));
}

TEST(JsonConstraint, PropertiesComeInTheirOrderAndOnce) {
  const std::string_view schema =
      R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"required":["b"],"additionalProperties":{"type":"integer"}})";
  for (const char* good :
       {R"({"b":1})", R"({"a":1,"b":1})", R"({"b":1,"c":1,"d":2})", R"({"b":1,"d":2,"aa":3,"":4})"}) {
    EXPECT_TRUE(accepts(schema, good)) << good;
  }
  for (const char* bad : {R"({})", R"({"a":1})", R"({"b":1,"a":1})", R"({"b":1,"b":1})", R"({"d":1,"b":1})",
                          R"({"b":1,})", R"({"b":1,"d":"x"})", R"({"b":1,"\u0063":"x"})", R"({"b":1,"d":1,"c":1})"}) {
    EXPECT_FALSE(accepts(schema, bad)) << bad;
  }
  EXPECT_FALSE(accepts(R"({"type":"object","properties":{"a":{}}})", R"({"b":1})"));  // closed by default
  EXPECT_TRUE(accepts(R"({"type":"object","properties":{}})", "{ }"));
}

// A model that has nothing to say must not go on for ever.
TEST(JsonConstraint, WhiteSpaceDigitsAndNestingAreBounded) {
  EXPECT_TRUE(accepts("{}", "\n\n{\n  \"a\": [ 1 ,\n\n 2 ]\n}\n"));
  EXPECT_FALSE(accepts("{}", "\n\n\n1"));
  EXPECT_FALSE(accepts("{}", std::string(65, ' ') + "1"));
  EXPECT_TRUE(accepts("{}", std::string(18, '1') + "." + std::string(18, '1') + "e-12"));
  EXPECT_FALSE(accepts("{}", std::string(19, '1')));
  EXPECT_FALSE(accepts("{}", "1e123"));
  EXPECT_TRUE(accepts("{}", std::string(64, '[') + std::string(64, ']')));
  EXPECT_FALSE(accepts("{}", std::string(65, '[')));
  EXPECT_FALSE(accepts("{}", std::string(64, '[') + "1"));
}

TEST(JsonConstraint, JS_01_WhiteSpaceThenJsonThenNothing) {
  const auto object = json_constraint(trie(), nullptr);
  ASSERT_TRUE(object);
  const auto whole = [&](std::string_view text) {
    const auto copy = (*object)->clone();
    return test::accepts_prefix(*copy, text) && copy->complete();
  };
  EXPECT_TRUE(whole("\n\n{\"answer\": \"x\"}\n"));
  for (const char* bad : {"", "\n\n", "[1]", "1", "\"x\"", "x{}", "{}{}", "{} x", "```json\n{}", "{\"a\":1"}) {
    EXPECT_FALSE(whole(bad)) << bad;
  }
  EXPECT_FALSE((*object)->clone()->accept(*tokenizer().added_token("</think>")));
}

TEST(JsonConstraint, JS_03_WhatIsNotEnforcedIsAnError) {
  EXPECT_EQ(error_of(R"({"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}})"),
            "properties.a.pattern: this keyword of JSON Schema is not supported");
  for (const char* keyword : {"pattern", "patternProperties", "propertyNames", "minProperties", "maxProperties",
                              "dependentRequired", "if", "then", "else", "not", "contains", "uniqueItems",
                              "unevaluatedProperties", "additionalItems", "$dynamicRef", "nonsense"}) {
    EXPECT_TRUE(
        error_of(R"({"items":{")" + std::string(keyword) + R"(":{}}})").starts_with("items." + std::string(keyword)));
  }
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"banana"})", "type"},
      {R"({"type":3})", "type"},
      {R"({"type":[]})", "type"},
      {R"({"properties":[]})", "properties"},
      {R"({"properties":{"a":3}})", "properties.a"},
      {R"({"required":"a"})", "required"},
      {R"({"type":"object","properties":{},"required":["a"],"additionalProperties":false})", "required"},
      {R"({"items":[{}]})", "items"},
      {R"({"minItems":-1})", "minItems"},
      {R"({"maxLength":1.5})", "maxLength"},
      {R"({"minimum":"1"})", "minimum"},
      {R"({"minimum":1,"exclusiveMinimum":true})", "exclusiveMinimum"},
      {R"({"type":"integer","multipleOf":7})", "multipleOf"},
      {R"({"$ref":"#/$defs/none"})", "$ref"},
      {R"({"$ref":"http://elsewhere/schema"})", "$ref"},
      {R"({"$ref":"#","minLength":3})", "minLength"},
      {R"({"anyOf":[]})", "anyOf"},
      {R"({"anyOf":[{"items":{"format":"x","contains":{}}}]})", "anyOf.0.items.contains"},
      {R"({"enum":["a"],"maxLength":3})", "maxLength"},
      {R"({"allOf":[{"type":"string"},{"type":"integer"}]})", "allOf.1.type"},
      {R"({"nullable":"yes"})", "nullable"},
  };
  for (const auto& [schema, where] : cases)
    EXPECT_TRUE(error_of(schema).starts_with(where)) << schema << error_of(schema);
}

TEST(JsonConstraint, ASchemaThatAllowsNothingIsAnError) {
  for (const char* schema :
       {"false", R"({"enum":[]})", R"({"type":"integer","minimum":2,"maximum":1})", R"({"type":"string","enum":[1]})",
        R"({"type":"string","minLength":2,"maxLength":1})", R"({"$ref":"#"})", R"({"anyOf":[{"$ref":"#"},false]})",
        R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
        R"({"type":"array","items":false,"minItems":1})",
        R"({"type":"number","exclusiveMinimum":1,"exclusiveMaximum":1.0000001})",
        R"({"type":"array","prefixItems":[{}],"minItems":2})"}) {
    EXPECT_TRUE(error_of(schema).starts_with("the schema allows nothing")) << schema << error_of(schema);
  }
}

TEST(JsonConstraint, HugeSchemasAreErrors) {
  OrderedJson deep = {{"type", "string"}};
  for (int i = 0; i < 1000; ++i) deep = {{"type", "array"}, {"items", std::move(deep)}};
  EXPECT_FALSE(json_constraint(trie(), &deep));
  OrderedJson wide = {{"enum", OrderedJson::array()}};
  for (int i = 0; i < 60'000; ++i) wide["enum"].push_back(i);
  EXPECT_FALSE(json_constraint(trie(), &wide));
  OrderedJson chain = {{"$ref", "#/$defs/0"}, {"$defs", OrderedJson::object()}};
  for (int i = 0; i < 2000; ++i) chain["$defs"][std::to_string(i)] = {{"$ref", "#/$defs/" + std::to_string(i + 1)}};
  chain["$defs"]["2000"] = {{"type", "null"}};
  EXPECT_FALSE(json_constraint(trie(), &chain));
}

// Ambiguous at every level, so that the ways to read a text would double with each.
TEST(JsonConstraint, AmbiguousRecursionStaysBounded) {
  const auto constraint = constraint_of(
      R"({"anyOf":[{"type":"object","properties":{"a":{"$ref":"#"},"b":{}}},
                   {"type":"object","properties":{"a":{"$ref":"#"},"c":{}}}]})");
  std::string text;
  for (int i = 0; i < 40; ++i) text += "{\"a\":";
  EXPECT_TRUE(test::accepts_prefix(*constraint, text + "{}" + std::string(40, '}')));
  EXPECT_TRUE(constraint->complete());
}

TEST(JsonConstraint, ManyTaggedAlternativesAreAllOpen) {
  OrderedJson schema = {{"anyOf", OrderedJson::array()}};
  for (int i = 0; i < 200; ++i) {
    schema["anyOf"].push_back({{"type", "object"},
                               {"properties", {{"kind", {{"const", i}}}, {"value", {{"type", "integer"}}}}},
                               {"required", {"kind", "value"}}});
  }
  EXPECT_TRUE(accepts(schema.dump(), R"({"kind": 199, "value": 5})"));
  EXPECT_FALSE(accepts(schema.dump(), R"({"kind": 200, "value": 5})"));
}

}  // namespace
}  // namespace lily
