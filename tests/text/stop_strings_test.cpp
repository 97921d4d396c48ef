#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include "runtime/sampler.h"

namespace lily {
namespace {

struct Outcome {
  std::string text;
  bool matched;
  bool operator==(const Outcome&) const = default;
};

Outcome feed(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopStrings filter(stops);
  std::string text;
  for (const std::string& piece : pieces) text += filter.push(piece);
  text += filter.finish();
  return {text, filter.matched()};
}

// What the class promises, on the whole text: the earliest end wins, then the longest stop.
Outcome expected(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

// ST-01
TEST(StopStrings, SpansPiecesAndIsCutExactly) {
  EXPECT_EQ(feed({"two three", "xyz"}, {"one", " two", " three", " four"}), (Outcome{"one ", true}));
}

TEST(StopStrings, WithoutAMatchNothingIsLost) {
  EXPECT_EQ(feed({"two three"}, {"one", " two", " thre"}), (Outcome{"one two thre", false}));
  EXPECT_EQ(feed({}, {"a", "b"}), (Outcome{"ab", false}));
}

TEST(StopStrings, HoldsBackNoMoreThanAPartialMatch) {
  StopStrings filter({"END", "stop"});
  EXPECT_EQ(filter.push("the E"), "the ");
  EXPECT_EQ(filter.push("N"), "");
  EXPECT_EQ(filter.push("S"), "ENS");
  EXPECT_EQ(filter.push("st"), "");
  EXPECT_EQ(filter.push("op!"), "");
  EXPECT_TRUE(filter.matched());
  EXPECT_EQ(filter.push("more"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopStrings, TheOneCompleteFirstWins) {
  EXPECT_EQ(feed({"abcd", "bc"}, {"xabcd"}), (Outcome{"xa", true}));
  EXPECT_EQ(feed({"c", "abc"}, {"xabc"}), (Outcome{"x", true}));  // both end there: the longest
}

TEST(StopStrings, APartialMatchThatRestartsInsideItself) {
  EXPECT_EQ(feed({"aab"}, {"a", "a", "a", "b"}), (Outcome{"a", true}));
  EXPECT_EQ(feed({"\n\n\n"}, {"x\n\n", "y\n", "\n\nz"}), (Outcome{"x\n\ny", true}));
}

// Every way to cut a text gives the same outcome.
TEST(StopStrings, EverySplitOfAText) {
  const std::string text = "aabxaab\nca";
  for (const auto& stops : std::vector<std::vector<std::string>>{
           {"b\nc"}, {"aab\n"}, {"xaa", "ab\nc"}, {"nothing"}, {"ca"}, {"a"}, {"bx", "aabx"}, {"caa"}}) {
    const Outcome want = expected(stops, text);
    for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
      std::vector<std::string> pieces(1);
      for (size_t i = 0; i < text.size(); ++i) {
        pieces.back() += text[i];
        if (cuts >> i & 1) pieces.emplace_back();
      }
      ASSERT_EQ(feed(stops, pieces), want) << stops[0] << " cuts " << cuts;
    }
  }
}

TEST(StopStrings, RandomTextsStopsAndSplits) {
  Random random(5);
  const auto text_of = [&](size_t length) {
    std::string text;
    while (text.size() < length) text += "ab"[random.next() % 2];
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(random.next() % 4);
    for (std::string& stop : stops) stop = text_of(1 + random.next() % 5);
    std::string text;
    std::vector<std::string> pieces(random.next() % 8);
    for (std::string& piece : pieces) text += piece = text_of(random.next() % 5);
    ASSERT_EQ(feed(stops, pieces), expected(stops, text)) << text;
  }
}

}  // namespace
}  // namespace lily
