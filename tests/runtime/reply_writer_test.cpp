#include "runtime/reply_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/byte_tokenizer.h"

namespace lily {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReplyWriterTest : public testing::Test {
 protected:
  int32_t id(const char* added) const { return *tokenizer_.added_token(added); }
  ReplyOptions greedy() const {
    ReplyOptions options;
    options.sampling.temperature = 0;
    options.end_tokens = {id("<|im_end|>")};
    return options;
  }
  ReplyWriter writer(const ReplyOptions& options, bool thinking = false) {
    const auto prompt = tokenizer_.encode(thinking ? "<think>\n" : "<think>\n\n</think>\n\n", true);
    return ReplyWriter(&tokenizer_, prompt, vocab(), options);
  }
  int32_t vocab() const { return tokenizer_.size() + 3; }  // padded

  // Logits that prefer `wanted`, then ids in their order.
  std::vector<float> preferring(int32_t wanted) const {
    std::vector<float> logits(static_cast<size_t>(vocab()));
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = -0.01f * static_cast<float>(i);
    logits[static_cast<size_t>(wanted)] = 5;
    return logits;
  }
  ReplyStep next(ReplyWriter& writer, int32_t wanted) {
    const Result<ReplyStep> step = writer.next(preferring(wanted));
    EXPECT_TRUE(step) << step.error().message();
    return step ? *step : ReplyStep{};
  }
  // Writes while the model wants to say `text`; its template marks are tokens.
  void write(ReplyWriter& writer, const std::string& text) {
    for (const int32_t wanted : tokenizer_.encode(text, true)) {
      if (!writer.finished()) next(writer, wanted);
    }
  }

  Tokenizer tokenizer_ = test::byte_tokenizer();
};

TEST_F(ReplyWriterTest, AnEndTokenEndsTheReplyAndIsNoPartOfIt) {
  ReplyWriter one = writer(greedy());
  write(one, "yes<|im_end|>no");
  EXPECT_EQ(one.finished(), Finish::end_token);
  one.end(*one.finished());
  EXPECT_EQ(one.reply().message.content, "yes");
  EXPECT_THAT(one.reply().tokens, ElementsAre('y', 'e', 's'));
}

TEST_F(ReplyWriterTest, MaxTokensEndsTheReply) {
  ReplyOptions options = greedy();
  options.max_tokens = 2;
  ReplyWriter one = writer(options);
  write(one, "yes");
  EXPECT_EQ(one.finished(), Finish::length);
  EXPECT_EQ(one.reply().tokens.size(), 2u);
  options.max_tokens = 0;
  EXPECT_EQ(writer(options).finished(), Finish::length);
}

TEST_F(ReplyWriterTest, TH_11_AThinkingBudgetClosesTheReasoning) {
  ReplyOptions options = greedy();
  options.thinking_budget = 4;
  ReplyWriter one = writer(options, true);
  write(one, "on and on and on and on");
  one.end(Finish::length);
  EXPECT_EQ(one.reply().message.reasoning, "on a\n");
  EXPECT_EQ(one.reply().channel, Channel::content);
  EXPECT_THAT(one.reply().message.content, HasSubstr("on and on"));

  options.thinking_budget = 0;
  ReplyWriter none = writer(options, true);
  write(none, "an answer of some length");
  none.end(Finish::length);
  EXPECT_EQ(none.reply().message.reasoning, "\n");
}

TEST_F(ReplyWriterTest, LP_02_EveryTokenHasItsLogprobReasoningToo) {
  ReplyOptions options = greedy();
  options.top_logprobs = 3;
  ReplyWriter one = writer(options, true);
  const std::vector<float> logits = preferring('a');
  double total = 0;
  for (int32_t i = 0; i < tokenizer_.size(); ++i)
    total += std::exp(static_cast<double>(logits[static_cast<size_t>(i)]));
  for (const int32_t wanted : tokenizer_.encode("aa</think>aa", true)) {
    const ReplyStep step = next(one, wanted);
    EXPECT_NEAR(step.logprob, 5 - std::log(total), 0.01);
    ASSERT_EQ(step.top.size(), 3u);
    EXPECT_EQ(step.top[0].id, wanted);
    EXPECT_FLOAT_EQ(step.top[0].logprob, step.logprob);
    EXPECT_EQ(step.top[1].id, 0);
    EXPECT_EQ(step.top[2].id, 1);
  }
  EXPECT_EQ(one.reply().reasoning_tokens, 3);
}

TEST_F(ReplyWriterTest, JS_01_AConstraintHoldsInTheContentOnly) {
  const auto trie = make_vocabulary_trie(tokenizer_);
  const OrderedJson schema = OrderedJson::parse(
      R"({"type":"object","properties":{"answer":{"type":"boolean"}},"required":["answer"],"additionalProperties":false})");
  ReplyOptions options = greedy();
  options.constraint = json_constraint(trie, &schema).value();
  ReplyWriter one = writer(options, true);
  write(one, "let me think<|im_end|> {\n</think>");  // an end in the thought is not allowed
  EXPECT_FALSE(one.finished());
  for (int i = 0; i < 500 && !one.finished(); ++i) next(one, 't');  // it would say nothing but t
  EXPECT_EQ(one.finished(), Finish::end_token);
  one.end(Finish::end_token);
  EXPECT_EQ(OrderedJson::parse(one.reply().message.content, nullptr, false), OrderedJson({{"answer", true}}))
      << one.reply().message.content;
  EXPECT_THAT(one.reply().message.reasoning, HasSubstr("let me think"));

  options.max_tokens = 3;  // spent in the thought
  ReplyWriter cut = writer(options, true);
  write(cut, "let me think");
  cut.end(*cut.finished());
  EXPECT_EQ(cut.reply().message.content, "");
  EXPECT_EQ(cut.reply().finish, Finish::length);
}

TEST_F(ReplyWriterTest, ARequiredCallIsMadeAndMaybeJustOne) {
  const OrderedJson tool = OrderedJson::parse(
      R"({"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}})");
  ReplyOptions options = greedy();
  options.splitter.tools = {tool};
  options.constraint = call_constraint(make_vocabulary_trie(tokenizer_), options.splitter.tools, true).value();
  ReplyWriter forced = writer(options);
  for (int i = 0; i < 300 && !forced.finished(); ++i) next(forced, id("<|im_end|>"));
  forced.end(Finish::end_token);
  ASSERT_GE(forced.reply().message.tool_calls.size(), 1u);
  EXPECT_EQ(forced.reply().message.tool_calls[0].name, "look");

  options.constraint = nullptr;
  const std::string call =
      "<tool_call>\n<function=look>\n<parameter=at>\nsea\n</parameter>\n</function>\n</tool_call>\n";
  for (const bool single : {true, false}) {
    options.single_call = single;
    ReplyWriter one = writer(options);
    write(one, call + call + "<|im_end|>");
    one.end(*one.finished());
    EXPECT_EQ(one.reply().message.tool_calls.size(), single ? 1u : 2u);
    EXPECT_EQ(one.reply().message.tool_calls[0].arguments, OrderedJson({{"at", "sea"}}));
  }
}

TEST_F(ReplyWriterTest, LogitsThatAreNoNumbersAreAnError) {
  ReplyWriter one = writer(greedy());
  std::vector<float> logits = preferring('a');
  logits[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(one.next(logits).error().message(), HasSubstr("not finite"));
}

TEST_F(ReplyWriterTest, APaddedVocabularyIsNeverSampled) {
  ReplyWriter one = writer(greedy());
  EXPECT_LT(next(one, tokenizer_.size() + 1).id, tokenizer_.size());
}

}  // namespace
}  // namespace lily
