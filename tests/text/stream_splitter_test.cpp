#include "text/stream_splitter.h"

#include <gtest/gtest.h>

#include "split_reply.h"

namespace lily {
namespace {

using test::SeenReply;

class StreamSplitterTest : public testing::Test {
 protected:
  SeenReply run(const std::string& prompt, const std::vector<int32_t>& reply, std::vector<std::string> stops = {}) {
    StreamSplitter splitter(tokenizer, tokenizer.encode(prompt, true), {tools, std::move(stops)});
    test::SeenEvents seen;
    std::vector<ReplyEvent> events;
    for (const int32_t id : reply) splitter.push(id, events);
    splitter.finish(events);
    for (const ReplyEvent& event : events) seen.add(event);
    seen.reply.stopped = splitter.stopped();
    return seen.reply;
  }
  SeenReply run(const std::string& prompt, const std::string& reply, std::vector<std::string> stops = {}) {
    return run(prompt, tokenizer.encode(reply, true), std::move(stops));
  }
  static SeenReply seen(const std::string& reasoning, const std::string& content, bool stopped = false) {
    return {reasoning, content, {}, stopped};
  }

  Tokenizer tokenizer = test::byte_tokenizer({"one", " two", " three", " four"});
  std::vector<OrderedJson> tools;
  const std::string thinking = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n";
  const std::string direct = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
};

TEST_F(StreamSplitterTest, TH_02_ThePromptDecidesWhereItStarts) {
  EXPECT_EQ(run(thinking, "hm</think>\n\nParis"), seen("hm", "Paris"));
  EXPECT_EQ(run(direct, "Paris"), seen("", "Paris"));
  EXPECT_EQ(run("Once upon", " a time"), seen("", " a time"));
}

// A user's text cannot hold the ids of the markers, so it cannot open or close a thought.
TEST_F(StreamSplitterTest, MarkersInUntrustedTextDoNotCount) {
  StreamSplitter splitter(tokenizer, tokenizer.encode("<think>", false), {});
  EXPECT_EQ(splitter.channel(), Channel::content);
  EXPECT_EQ(run(thinking, tokenizer.encode("a</think>b", false)), seen("a</think>b", ""));
}

TEST_F(StreamSplitterTest, TH_01_CutInsideAThoughtAllIsReasoning) {
  EXPECT_EQ(run(thinking, "well, let"), seen("well, let", ""));
  tools = {test::tool("f")};
  EXPECT_EQ(run(thinking, "well, let "), seen("well, let ", ""));
}

TEST_F(StreamSplitterTest, TH_04_ToolsDoNotTakeTheMarker) {
  tools = {test::tool("f")};
  EXPECT_EQ(run(thinking, "thought</think>\n\nplain answer"), seen("thought", "plain answer"));
  EXPECT_EQ(run(thinking, "thought <tool</think>plain < answer"), seen("thought <tool", "plain < answer"));
  EXPECT_EQ(run(thinking, "a\n\n</think>\n\n"), seen("a\n\n", ""));
}

TEST_F(StreamSplitterTest, SpaceAfterTheThoughtIsDropped) {
  EXPECT_EQ(run(thinking, "a </think> \n\n b \n"), seen("a ", "b \n"));
  EXPECT_EQ(run(direct, "\n a"), seen("", "\n a"));
}

TEST_F(StreamSplitterTest, ALeadingOpenMarkerOpensTheReasoning) {
  EXPECT_EQ(run(thinking, "<think>hm</think>x"), seen("hm", "x"));
  EXPECT_EQ(run("no template", "<think>hm</think>x"), seen("hm", "x"));
}

// They stay text: a file in the making may hold them.
TEST_F(StreamSplitterTest, TH_11_LaterMarkersDoNotSwitch) {
  std::string loop;
  for (int i = 0; i < 300; ++i) loop += "again</think>";
  EXPECT_EQ(run(thinking, "hm</think>" + loop + "<think>"), seen("hm", loop + "<think>"));
  tools = {test::tool("f")};
  EXPECT_EQ(run(direct, test::xml_call("f", {{"a", "x</think>"}})),
            (SeenReply{"", "", {{"f", R"({"a":"x</think>"})"}}}));
}

TEST_F(StreamSplitterTest, SpecialTokensHaveNoText) {
  EXPECT_EQ(run(direct, "a<|im_start|>b<|endoftext|>c"), seen("", "abc"));
}

TEST_F(StreamSplitterTest, NeverHalfACharacter) {
  StreamSplitter splitter(tokenizer, tokenizer.encode(direct, true), {});
  std::vector<std::string> pieces;
  for (const int32_t id : tokenizer.encode("é😀!")) {
    std::vector<ReplyEvent> events;
    splitter.push(id, events);
    pieces.push_back(events.empty() ? "" : events[0].text);
  }
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "é", "", "", "", "😀", "!"}));
  EXPECT_EQ(run(direct, std::vector<int32_t>{'x', 0xf0, 0x9f}), seen("", "x\xEF\xBF\xBD"));
  // The end of a thought ends its last character, too.
  std::vector<int32_t> cut = {0xc3, *tokenizer.added_token("</think>"), 0xa9};
  EXPECT_EQ(run(thinking, cut), seen("\xEF\xBF\xBD", "\xEF\xBF\xBD"));
}

// The caller may keep what it was given.
TEST_F(StreamSplitterTest, AppendsEvents) {
  StreamSplitter splitter(tokenizer, {}, {});
  std::vector<ReplyEvent> events;
  splitter.push('a', events);
  splitter.push('b', events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].text, "a");
  EXPECT_EQ(events[1].text, "b");
}

TEST_F(StreamSplitterTest, ST_01_StopStringsAcrossTokens) {
  const std::vector<int32_t> reply = tokenizer.encode("one two three four");
  ASSERT_EQ(reply.size(), 4u);
  EXPECT_EQ(run(direct, reply, {"two three", "xyz"}), seen("", "one ", true));
  tools = {test::tool("f")};
  EXPECT_EQ(run(direct, reply, {"two three", "xyz"}), seen("", "one ", true));
}

TEST_F(StreamSplitterTest, ST_03_HoldingBackAStopDoesNotCutAMarker) {
  for (const bool with_tools : {false, true}) {
    if (with_tools) tools = {test::tool("f")};
    EXPECT_EQ(run(thinking, "x</think>ab", {"b,c"}), seen("x", "ab"));
    EXPECT_EQ(run(thinking, "x</think>ab,cd", {"b,c"}), seen("x", "a", true));
    EXPECT_EQ(run(thinking, "x<</think>/think>", {"</think>"}), seen("x<", "/think>"));
    EXPECT_EQ(run(thinking, "x</think>\n\nab", {"\n\n"}), seen("x", "ab"));
  }
}

TEST_F(StreamSplitterTest, StopStringsAreForContent) {
  EXPECT_EQ(run(thinking, "say STOP?</think>no STOP", {"STOP"}), seen("say STOP?", "no ", true));
}

TEST_F(StreamSplitterTest, AStopStringOfManyByteCharacters) {
  EXPECT_EQ(run(direct, "caf\u00e8 caf\u00e9!", {"\u00e9"}), seen("", "caf\u00e8 caf", true));
}

}  // namespace
}  // namespace lily
