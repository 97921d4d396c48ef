#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lily {
namespace {

const char* const qwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";

std::vector<std::string> split(const std::string& pattern, std::string_view text) {
  const auto tokenizer = PreTokenizer::compile(pattern, "test");
  if (!tokenizer) return {tokenizer.error().message()};
  PreTokenizer::Pieces pieces(tokenizer.value(), text);
  std::vector<std::string> out;
  for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) out.emplace_back(piece);
  return out;
}

using Words = std::vector<std::string>;

TEST(PreTokenizer, TK_06_SplitsAsQwenDoes) {
  EXPECT_EQ(split(qwen, ""), Words{});
  EXPECT_EQ(split(qwen, "I'LL don't"), (Words{"I", "'LL", " don", "'t"}));
  EXPECT_EQ(split(qwen, "a->b (x):\n\n"), (Words{"a", "->", "b", " (", "x", "):\n\n"}));
  EXPECT_EQ(split(qwen, " 123"), (Words{" ", "1", "2", "3"}));
  EXPECT_EQ(split(qwen, "  \n\n\t x"), (Words{"  \n\n", "\t", " x"}));
  EXPECT_EQ(split(qwen, "e\u0301 !\u0301 1\u0301"), (Words{"e\u0301", " !", "\u0301", " ", "1", "\u0301"}));
}

TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(split("\\s+", "a\u0085\u00A0\u2028\u3000b"), (Words{"a", "\u0085\u00A0\u2028\u3000", "b"}));
  EXPECT_EQ(split("\\s+", "a\u180Eb\u200Bc"), (Words{"a\u180Eb\u200Bc"}));  // no longer and never white space
  EXPECT_EQ(split("[^\\S\\n]+", "a\u180E \nb"), (Words{"a\u180E", " ", "\nb"}));
  EXPECT_EQ(split("\\\\s", "a\\s b"), (Words{"a", "\\s", " b"}));  // a backslash and an s
}

TEST(PreTokenizer, WhatDoesNotMatchIsAPiece) {
  EXPECT_EQ(split("[0-9]+", "ab12cd"), (Words{"ab", "12", "cd"}));
  EXPECT_EQ(split("z", "abc"), Words{"abc"});
  EXPECT_EQ(split("(?!)", "abc"), Words{"abc"});
}

TEST(PreTokenizer, EmptyMatchesCut) {
  EXPECT_EQ(split("(?=[A-ZÉ])", "aBcÉÉ"), (Words{"a", "Bc", "É", "É"}));
  EXPECT_EQ(split("x*", "axxb灯"), (Words{"a", "xx", "b", "灯"}));
  EXPECT_EQ(split("", "ab"), (Words{"a", "b"}));
  EXPECT_EQ(split("$", "ab"), Words{"ab"});
}

// Megabytes of one class cost a step a character; that must not count as an explosion.
TEST(PreTokenizer, LongRunsAreOnePiece) {
  const std::string spaces(20'000'000, ' ');
  const Words words = split(qwen, spaces + "x");
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[1], " x");
}

TEST(PreTokenizer, ExplodingPatternsEnd) {
  const std::string text = std::string(200, 'a') + "bc";
  EXPECT_EQ(split("(a+a+)+d", "ad" + text), (Words{"ad" + text}));
  EXPECT_EQ(split("aad|(?:a|a|a)+$", "aad" + text), (Words{"aad", text}));
  EXPECT_EQ(split("(?R)?a", "xa"), (Words{"xa"}));  // recurses without end
}

}  // namespace
}  // namespace lily
