#include "runtime/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/byte_tokenizer.h"
#include "support/fake_backend.h"

namespace lily {
namespace {

using test::FakeBackend;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<int32_t> prompt = {10, 11, 12, 13, 14};

// Says `reply` after a prompt of `prompt_size` tokens, then 99 for ever.
FakeBackend::Script says(std::vector<int32_t> reply, size_t prompt_size = prompt.size()) {
  return [=](const std::vector<int32_t>& history) {
    const size_t at = history.size() - prompt_size;
    return at < reply.size() ? reply[at] : 99;
  };
}

Reply run(Session& session, const GenerateOptions& options, const std::vector<int32_t>& ids = prompt,
          const Tokenizer* tokenizer = nullptr) {
  Result<Reply> reply = generate(session, tokenizer, ids, options);
  EXPECT_TRUE(reply.ok()) << reply.error().message();
  return reply ? std::move(*reply) : Reply{};
}

GenerateOptions greedy() { return {.reply = {.sampling = {.temperature = 0}, .end_tokens = {99}}}; }

TEST(Generate, EndsAtAnEndTokenThatIsNoPartOfTheReply) {
  FakeBackend backend(100, 1000, says({1, 2, 3}));
  Session session = Session::create(backend).value();
  const Reply reply = run(session, greedy());
  EXPECT_THAT(reply.tokens, ElementsAre(1, 2, 3));
  EXPECT_EQ(reply.finish, Finish::end_token);
  EXPECT_EQ(reply.prompt_tokens, 5);
  EXPECT_EQ(reply.prefilled_tokens, 5);
  EXPECT_EQ(reply.decoded_tokens, 3);
  EXPECT_GT(reply.prefill_rate(), 0);
  EXPECT_GT(reply.decode_rate(), 0);
}

// TK-08: any token of the list ends it.
TEST(Generate, TK_08_EveryEndTokenCounts) {
  FakeBackend backend(100, 1000, says({1, 2, 98, 4}));
  Session session = Session::create(backend).value();
  GenerateOptions options = greedy();
  options.reply.end_tokens = {98, 99};
  EXPECT_THAT(run(session, options).tokens, ElementsAre(1, 2));
}

// TH-10
TEST(Generate, HasNoHiddenLimit) {
  FakeBackend backend(100, 1 << 20, says(std::vector<int32_t>(6000, 7)));
  Session session = Session::create(backend).value();
  EXPECT_EQ(run(session, greedy()).tokens.size(), 6000u);
}

TEST(Generate, StopsAtTheWantedLength) {
  FakeBackend backend(100, 1000, says({1, 2, 3, 4}));
  Session session = Session::create(backend).value();
  GenerateOptions options = greedy();
  options.reply.max_tokens = 3;
  const Reply reply = run(session, options);
  EXPECT_THAT(reply.tokens, ElementsAre(1, 2, 3));
  EXPECT_EQ(reply.finish, Finish::length);
  EXPECT_EQ(backend.decoded, 2);  // the last token's logits are of no use
  options.reply.max_tokens = 0;
  EXPECT_THAT(run(session, options).tokens, IsEmpty());
}

TEST(Generate, FillsTheContextToTheLastToken) {
  FakeBackend backend(100, 8, says({1, 2, 3, 4, 5, 6, 7}));
  Session session = Session::create(backend).value();
  const Reply reply = run(session, greedy());
  EXPECT_THAT(reply.tokens, ElementsAre(1, 2, 3, 4));  // the fourth is sampled from a full state
  EXPECT_EQ(reply.finish, Finish::context_full);
}

TEST(Generate, APromptThatDoesNotFitIsAnError) {
  FakeBackend backend(100, 4);
  Session session = Session::create(backend).value();
  const Result<Reply> reply = generate(session, nullptr, prompt, greedy());
  ASSERT_FALSE(reply.ok());
  EXPECT_THAT(reply.error().message(), HasSubstr("context is full: expected at most 4 tokens, got 5"));
}

TEST(Generate, BadParametersAreErrors) {
  FakeBackend backend(100);
  Session session = Session::create(backend).value();
  GenerateOptions options = greedy();
  options.reply.sampling.top_p = 0;
  EXPECT_FALSE(generate(session, nullptr, prompt, options).ok());
  options = greedy();
  options.reply.splitter.stops = {"a", ""};
  EXPECT_FALSE(generate(session, nullptr, prompt, options).ok());
}

TEST(Generate, CancelDuringTheReplyKeepsWhatWasSaid) {
  const Tokenizer tokenizer = test::byte_tokenizer();
  FakeBackend backend(tokenizer.size(), 1000, [](const auto&) { return 'x'; });
  Session session = Session::create(backend).value();
  std::atomic<bool> cancel = false;
  GenerateOptions options = greedy();
  options.sync.cancel = &cancel;
  std::string text;
  options.on_event = [&](const ReplyEvent& event) {
    text += event.text;
    cancel = text.size() == 3;
  };
  const Reply reply = run(session, options, prompt, &tokenizer);
  EXPECT_EQ(reply.finish, Finish::cancelled);
  EXPECT_EQ(text, "xxx");
  EXPECT_EQ(reply.tokens.size(), 3u);
}

TEST(Generate, CancelDuringThePrefillSaysNothing) {
  FakeBackend backend(100, 1000, says({1, 2, 3}));
  Session session = Session::create(backend).value();
  std::atomic<bool> cancel = false;
  GenerateOptions options = greedy();
  options.sync = {.chunk = 2, .progress = [&](int64_t done, int64_t) { cancel = done > 0; }, .cancel = &cancel};
  const Reply reply = run(session, options);
  EXPECT_EQ(reply.finish, Finish::cancelled);
  EXPECT_THAT(reply.tokens, IsEmpty());
  EXPECT_EQ(reply.prefilled_tokens, 2);
}

TEST(Generate, StreamsReasoningAndContent) {
  const Tokenizer tokenizer = test::byte_tokenizer();
  const std::vector<int32_t> ids = tokenizer.encode("<think>\n", true);
  std::vector<int32_t> said = tokenizer.encode("so</think>\n\nyes", true);
  said.push_back(99);
  FakeBackend backend(tokenizer.size(), 1000, says(said, ids.size()));
  Session session = Session::create(backend).value();
  GenerateOptions options = greedy();
  std::vector<std::string> events;
  options.on_event = [&](const ReplyEvent& event) {
    events.push_back((event.kind == ReplyEvent::Kind::reasoning ? "r:" : "c:") + event.text);
  };
  const Reply reply = run(session, options, ids, &tokenizer);
  EXPECT_THAT(events, ElementsAre("r:s", "r:o", "c:y", "c:e", "c:s"));
  EXPECT_EQ(reply.channel, Channel::content);
}

TEST(Generate, StopStringEndsItAndTheHeldBackTextIsGone) {
  const Tokenizer tokenizer = test::byte_tokenizer();
  FakeBackend backend(tokenizer.size(), 1000, says(tokenizer.encode("hello END never"), prompt.size()));
  Session session = Session::create(backend).value();
  GenerateOptions options = greedy();
  options.reply.splitter.stops = {"END"};
  std::string text;
  options.on_event = [&](const ReplyEvent& event) { text += event.text; };
  const Reply reply = run(session, options, prompt, &tokenizer);
  EXPECT_EQ(text, "hello ");
  EXPECT_EQ(reply.finish, Finish::stop_string);
  EXPECT_EQ(reply.tokens, tokenizer.encode("hello END"));
}

TEST(Generate, WhatIsHeldBackAtTheEndIsStillSaid) {
  const Tokenizer tokenizer = test::byte_tokenizer();
  std::vector<int32_t> said = tokenizer.encode("the E");
  said.push_back(99);
  FakeBackend backend(tokenizer.size(), 1000, says(said, prompt.size()));
  Session session = Session::create(backend).value();
  GenerateOptions options = greedy();
  options.reply.splitter.stops = {"END"};
  std::string text;
  options.on_event = [&](const ReplyEvent& event) { text += event.text; };
  run(session, options, prompt, &tokenizer);
  EXPECT_EQ(text, "the E");
}

TEST(Generate, PaddedIdsAreNeverSampled) {
  const Tokenizer tokenizer = test::byte_tokenizer();
  FakeBackend backend(tokenizer.size() + 50, 1000, [&](const auto&) { return tokenizer.size() + 7; });
  Session session = Session::create(backend).value();
  GenerateOptions options = greedy();
  options.reply.max_tokens = 5;
  EXPECT_THAT(run(session, options, prompt, &tokenizer).tokens, testing::Each(testing::Lt(tokenizer.size())));
}

TEST(Generate, SameSeedSameReply) {
  FakeBackend backend(1000);
  const auto tokens = [&](uint64_t seed) {
    Session session = Session::create(backend).value();
    GenerateOptions options{.reply = {.sampling = {.top_k = 0, .top_p = 1, .seed = seed}, .max_tokens = 20}};
    return run(session, options).tokens;
  };
  EXPECT_EQ(tokens(3), tokens(3));
  EXPECT_NE(tokens(3), tokens(4));
}

// Turns appended to one session, whole or cut off, give what each prompt gives a fresh session, and nothing that the
// session holds is read again.
TEST(Generate, AConversationIsEqualToColdRuns) {
  FakeBackend backend(200);
  Session session = Session::create(backend).value();
  std::vector<int32_t> ids = prompt;
  size_t known = 0;
  for (int turn = 0; turn < 12; ++turn) {
    GenerateOptions options = greedy();
    options.reply.sampling = {
        .repetition_penalty = 1.3f, .presence_penalty = 0.5f, .seed = static_cast<uint64_t>(turn)};
    options.reply.max_tokens = 1 + turn % 5;
    options.sync.chunk = 3;
    options.sync.boundaries = {static_cast<int64_t>(ids.size())};
    const Reply reply = run(session, options, ids);
    EXPECT_EQ(reply.reused_tokens, static_cast<int64_t>(known));
    Session fresh = Session::create(backend).value();
    EXPECT_EQ(run(fresh, options, ids).tokens, reply.tokens);
    known = session.tokens().size();
    ids.insert(ids.end(), reply.tokens.begin(), reply.tokens.end());
    for (int32_t id = 0; id < 6; ++id) ids.push_back(100 + id);
  }
  EXPECT_THAT(backend.breaches, IsEmpty());
}

}  // namespace
}  // namespace lily
