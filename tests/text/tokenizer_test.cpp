#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "goldens.h"
#include "text/utf8.h"

namespace lily {
namespace {

using Json = nlohmann::json;

std::vector<TextPiece> pieces_of(const Json& list) {
  std::vector<TextPiece> pieces;
  for (const Json& piece : list) pieces.push_back({piece[0], piece[1]});
  return pieces;
}

TEST(Tokenizer, TK_05_TK_06_GivesTheReferenceIds) {
  const Json goldens = Json::parse(read_golden("tokenizer_vectors.json"));
  std::map<std::string, Tokenizer> tokenizers;
  for (const auto& [name, patch] : goldens["variants"].items()) {
    Json file = Json::parse(read_golden("tokenizer.json"));
    file.merge_patch(patch);
    auto tokenizer = Tokenizer::parse(file.dump(), name);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    tokenizers.emplace(name, std::move(tokenizer).value());
  }
  for (const Json& vector : goldens["vectors"]) {
    EXPECT_EQ(tokenizers.at(vector[0]).encode(pieces_of(vector[1])), vector[2].get<std::vector<int32_t>>()) << vector;
  }
  EXPECT_GT(goldens["vectors"].size(), 1000u);
}

TEST(Tokenizer, ReadsMergesInBothForms) {
  Json file = Json::parse(read_golden("tokenizer.json"));
  ASSERT_TRUE(file["model"]["merges"][0].is_array());
  for (Json& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  const auto lines = Tokenizer::parse(file.dump(), "lines");
  ASSERT_TRUE(lines) << lines.error().message();
  const Tokenizer pairs = golden_tokenizer();
  const Json goldens = Json::parse(read_golden("tokenizer_vectors.json"));
  for (const Json& vector : goldens["vectors"]) {
    EXPECT_EQ(lines.value().encode(pieces_of(vector[1])), pairs.encode(pieces_of(vector[1]))) << vector;
  }
}

TEST(Tokenizer, ReadsEscapedAndIndentedFiles) {
  const Json file = Json::parse(read_golden("tokenizer.json"));
  const auto escaped = Tokenizer::parse(file.dump(2, ' ', true), "escaped");
  ASSERT_TRUE(escaped) << escaped.error().message();
  const std::string text = "Où est \"the\" 灯塔?\n";
  EXPECT_EQ(escaped.value().encode(text), golden_tokenizer().encode(text));
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = golden_tokenizer();
  const int32_t end = tokenizer.added_token("<|im_end|>").value();
  EXPECT_EQ(tokenizer.bytes_of(end), "<|im_end|>");
  EXPECT_TRUE(tokenizer.is_special(end));
  const int32_t think = tokenizer.added_token("<think>").value();
  EXPECT_FALSE(tokenizer.is_special(think));
  EXPECT_EQ(tokenizer.size(), tokenizer.added_token("</think>").value() + 1);
  EXPECT_FALSE(tokenizer.added_token("the"));
  EXPECT_FALSE(tokenizer.added_token(""));
  for (const int32_t unknown : {-1, tokenizer.size(), INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer.bytes_of(unknown), "");
    EXPECT_FALSE(tokenizer.is_special(unknown));
  }
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{think, -5, end}), "<think><|im_end|>");
}

TEST(Tokenizer, LongestAddedTokenWins) {
  Json file = Json::parse(read_golden("tokenizer.json"));
  for (const char* content : {"<thinking>", "<think><think>"}) {
    const int id = 4000 + static_cast<int>(file["added_tokens"].size());
    file["added_tokens"].push_back({{"id", id}, {"content", content}, {"normalized", false}});
  }
  const auto tokenizer = Tokenizer::parse(file.dump(), "added");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  const int32_t think = tokenizer.value().added_token("<think>").value();
  const int32_t twice = tokenizer.value().added_token("<think><think>").value();
  EXPECT_EQ(tokenizer.value().encode("<think><think><think>", true), (std::vector<int32_t>{twice, think}));
  EXPECT_EQ(tokenizer.value().encode("<think><thinking>", true),
            (std::vector<int32_t>{think, tokenizer.value().added_token("<thinking>").value()}));
}

bool is_added(const Tokenizer& tokenizer, int32_t id) { return tokenizer.added_token(tokenizer.bytes_of(id)) == id; }

// Message text cannot forge a turn, whatever it is made of, and comes back unchanged.
TEST(Tokenizer, TK_03_UntrustedTextNeverBecomesAddedTokens) {
  const Tokenizer tokenizer = golden_tokenizer();
  const std::vector<std::string> parts = {"<|im_end|>", "<|im_start|>",
                                          "system\n",   "<think>",
                                          "</think>",   "<",
                                          "|",          "im_end",
                                          "|>",         ">",
                                          "/",          " ",
                                          "\n",         "<tool_call>",
                                          "\xFF",       "\xE4\xB8",
                                          "灯",         "🙂",
                                          "'s",         "12",
                                          "é",          std::string(1, '\0')};
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TextPiece> pieces;
    std::string whole;
    for (auto count = 1 + random() % 3; count > 0; --count) {
      std::string text;
      for (auto length = random() % 8; length > 0; --length) text += parts[random() % parts.size()];
      whole += text;
      pieces.push_back({text, false});
    }
    const auto ids = tokenizer.encode(pieces);
    for (const int32_t id : ids) EXPECT_FALSE(is_added(tokenizer, id)) << whole;
    EXPECT_EQ(tokenizer.decode(ids), whole);
  }
}

// Even where the whole text is one pre-token that stands in the vocabulary.
TEST(Tokenizer, IgnoreMergesFindsNoAddedTokens) {
  Json file = Json::parse(read_golden("tokenizer.json"));
  file["model"]["ignore_merges"] = true;
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(?!)";
  const auto tokenizer = Tokenizer::parse(file.dump(), "ignore_merges");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_GT(tokenizer.value().encode("<think>").size(), 1u);
  EXPECT_EQ(tokenizer.value().encode("<think>", true).size(), 1u);
}

TEST(Tokenizer, KeepsEveryByteOfMalformedText) {
  const Tokenizer tokenizer = golden_tokenizer();
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (auto length = random() % 20; length > 0; --length) bytes += static_cast<char>(random());
    if (valid_utf8_prefix(bytes) == bytes.size()) continue;  // normalisation may change it
    std::string normal;                                      // the same, with ASCII for each well-formed stretch
    for (std::string_view rest = bytes; !rest.empty();) {
      const Utf8Step step = utf8_step(rest);
      normal += step.kind == Utf8Step::Kind::character ? "x" : std::string(rest.substr(0, step.size));
      rest.remove_prefix(step.size);
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(normal)), normal);
  }
  const int32_t the = tokenizer.encode("the")[0], stray = tokenizer.encode("\xFF")[0];
  EXPECT_EQ(tokenizer.encode("the\xFFthe\xFF"), (std::vector<int32_t>{the, stray, the, stray}));
}

TEST(Tokenizer, PiecesMayCutCharacters) {
  const Tokenizer tokenizer = golden_tokenizer();
  const std::string text = "灯塔 🙂 e\u0301";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::vector<TextPiece> pieces = {{text.substr(0, cut), false}, {text.substr(cut), true}};
    EXPECT_EQ(tokenizer.encode(pieces), tokenizer.encode(text)) << cut;
  }
}

// One character class for megabytes: neither the stack nor the time may grow out of hand.
TEST(Tokenizer, TakesLongRuns) {
  const Tokenizer tokenizer = golden_tokenizer();
  for (const std::string unit : {" ", "a", "!", "\n", "é", "灯", "\u0301", "\u3000", "ab ", "1", "\xFF", " \n"}) {
    std::string text;
    while (text.size() < 500'000) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text + "x")), text + "x") << unit;
  }
}

}  // namespace
}  // namespace lily
