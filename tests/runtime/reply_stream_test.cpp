#include "runtime/reply_stream.h"

#include <gtest/gtest.h>

#include "support/byte_tokenizer.h"

namespace lily {
namespace {

struct Split {
  std::string reasoning, content;
  bool stopped = false;
  bool operator==(const Split&) const = default;
};

void PrintTo(const Split& split, std::ostream* out) {
  *out << "reasoning \"" << split.reasoning << "\" content \"" << split.content << "\""
       << (split.stopped ? " stopped" : "");
}

class ReplyStreamTest : public testing::Test {
 protected:
  Split run(const std::string& prompt, const std::vector<int32_t>& reply, std::vector<std::string> stops = {}) {
    ReplyStream stream(tokenizer, tokenizer.encode(prompt, true), std::move(stops));
    Split split;
    const auto add = [&](const TextEvent& event) {
      (event.channel == Channel::content ? split.content : split.reasoning) += event.text;
    };
    for (const int32_t id : reply) {
      add(stream.push(id));
      if (stream.stopped()) break;
    }
    add(stream.finish());
    split.stopped = stream.stopped();
    return split;
  }
  Split run(const std::string& prompt, const std::string& reply, std::vector<std::string> stops = {}) {
    return run(prompt, tokenizer.encode(reply, true), std::move(stops));
  }

  Tokenizer tokenizer = test::byte_tokenizer({"one", " two", " three", " four"});
  const std::string thinking = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n";
  const std::string direct = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
};

TEST_F(ReplyStreamTest, ThePromptDecidesWhereItStarts) {
  EXPECT_EQ(run(thinking, "hm</think>\n\nParis"), (Split{"hm", "\n\nParis"}));
  EXPECT_EQ(run(direct, "Paris"), (Split{"", "Paris"}));  // TH-02
  EXPECT_EQ(run("Once upon", " a time"), (Split{"", " a time"}));
}

// A user's text cannot hold the ids of the markers, so it cannot open or close a thought.
TEST_F(ReplyStreamTest, MarkersInUntrustedTextDoNotCount) {
  ReplyStream stream(tokenizer, tokenizer.encode("<think>", false), {});
  EXPECT_EQ(stream.channel(), Channel::content);
  EXPECT_EQ(run(thinking, tokenizer.encode("a</think>b", false)), (Split{"a</think>b", ""}));
}

// TH-01
TEST_F(ReplyStreamTest, CutInsideAThoughtAllIsReasoning) {
  EXPECT_EQ(run(thinking, "well, let"), (Split{"well, let", ""}));
}

TEST_F(ReplyStreamTest, ALeadingOpenMarkerOpensTheReasoning) {
  EXPECT_EQ(run(thinking, "<think>hm</think>x"), (Split{"hm", "x"}));
  EXPECT_EQ(run("no template", "<think>hm</think>x"), (Split{"hm", "x"}));
}

// TH-11
TEST_F(ReplyStreamTest, LaterMarkersDoNotSwitch) {
  std::string loop;
  for (int i = 0; i < 300; ++i) loop += "again</think>";
  const Split split = run(thinking, "hm</think>" + loop + "<think>");
  EXPECT_EQ(split.reasoning, "hm");
  EXPECT_EQ(split.content, loop + "<think>");
}

TEST_F(ReplyStreamTest, SpecialTokensHaveNoText) {
  EXPECT_EQ(run(direct, "a<|im_start|>b<|endoftext|>c"), (Split{"", "abc"}));
}

TEST_F(ReplyStreamTest, NeverHalfACharacter) {
  ReplyStream stream(tokenizer, tokenizer.encode(direct, true), {});
  std::vector<std::string> pieces;
  for (const int32_t id : tokenizer.encode("é😀!")) pieces.push_back(stream.push(id).text);
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "é", "", "", "", "😀", "!"}));
  EXPECT_EQ(run(direct, std::vector<int32_t>{'x', 0xf0, 0x9f}), (Split{"", "x\xEF\xBF\xBD"}));
  // The end of a thought ends its last character, too.
  std::vector<int32_t> cut = {0xc3, *tokenizer.added_token("</think>"), 0xa9};
  EXPECT_EQ(run(thinking, cut), (Split{"\xEF\xBF\xBD", "\xEF\xBF\xBD"}));
}

// ST-01
TEST_F(ReplyStreamTest, StopStringsAcrossTokens) {
  const std::vector<int32_t> reply = tokenizer.encode("one two three four");
  ASSERT_EQ(reply.size(), 4u);
  EXPECT_EQ(run(direct, reply, {"two three", "xyz"}), (Split{"", "one ", true}));
}

// ST-03
TEST_F(ReplyStreamTest, HoldingBackAStopDoesNotCutAMarker) {
  EXPECT_EQ(run(thinking, "x</think>ab", {"b,c"}), (Split{"x", "ab"}));
  EXPECT_EQ(run(thinking, "x</think>ab,cd", {"b,c"}), (Split{"x", "a", true}));
  EXPECT_EQ(run(thinking, "x<</think>/think>", {"</think>"}), (Split{"x<", "/think>"}));
}

TEST_F(ReplyStreamTest, StopStringsAreForContent) {
  EXPECT_EQ(run(thinking, "say STOP?</think>no STOP", {"STOP"}), (Split{"say STOP?", "no ", true}));
}

TEST_F(ReplyStreamTest, AStopStringOfManyByteCharacters) {
  EXPECT_EQ(run(direct, "caf\u00e8 caf\u00e9!", {"\u00e9"}), (Split{"", "caf\u00e8 caf", true}));
}

}  // namespace
}  // namespace lily
