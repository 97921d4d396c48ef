#include "runtime/reply_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"
#include "support/test_model.h"

namespace lily {
namespace {

using Ids = std::vector<int32_t>;
constexpr auto nothing = std::nullopt;

const Ids before = {1, 2, 3};

Message reply(std::string content, std::string reasoning = "") {
  return {.role = Role::assistant, .content = std::move(content), .reasoning = std::move(reasoning)};
}

Message call(OrderedJson arguments, std::string content = "") {
  Message message = reply(std::move(content));
  message.tool_calls.push_back({.id = "x", .name = "f", .arguments = std::move(arguments)});
  return message;
}

TEST(ReplyMemory, RecallsAReplyAfterTheSameTokensOnly) {
  ReplyMemory memory;
  memory.remember(before, reply("yes", "hm"), {4, 5});
  EXPECT_EQ(memory.recall(before, reply("yes", "hm")), Ids({4, 5}));
  EXPECT_EQ(memory.recall(before, reply(" yes\n")), Ids({4, 5})) << "white space and missing reasoning do not matter";
  EXPECT_EQ(memory.recall(before, reply("yes", "another thought")), nothing);
  EXPECT_EQ(memory.recall(before, reply("no")), nothing);
  EXPECT_EQ(memory.recall(Ids{1, 2}, reply("yes")), nothing);
  EXPECT_EQ(memory.recall(before, call({{"a", 1}}, "yes")), nothing);
}

// PC-04: what a client makes of a call is the same call.
TEST(ReplyMemory, PC_04_ACallIsItsNameAndItsArguments) {
  ReplyMemory memory;
  memory.remember(before, call({{"a", 1}, {"b", "x"}}, "I will look.\n\n"), {4});
  Message back = call({{"b", "x"}, {"a", 1}}, "I will look.");
  back.tool_calls[0].id = "another id";
  EXPECT_EQ(memory.recall(before, back), Ids({4}));
  EXPECT_EQ(memory.recall(before, call({{"a", 2}, {"b", "x"}}, "I will look.")), nothing);
  back.tool_calls[0].name = "g";
  EXPECT_EQ(memory.recall(before, back), nothing);
  EXPECT_EQ(memory.recall(before, reply("I will look.")), nothing);
}

TEST(ReplyMemory, TheLastOfEqualRepliesIsKept) {
  ReplyMemory memory;
  memory.remember(before, reply("yes", "one"), {4});
  memory.remember(before, reply("yes", "two"), {5});
  EXPECT_EQ(memory.recall(before, reply("yes")), Ids({5}));
}

TEST(ReplyMemory, TheOldestGo) {
  ReplyMemory memory("", 10'000);
  for (int32_t i = 0; i < 1000; ++i) memory.remember(Ids{i}, reply("yes"), {i, i, i});
  EXPECT_EQ(memory.recall(Ids{0}, reply("yes")), nothing);
  EXPECT_EQ(memory.recall(Ids{999}, reply("yes")), Ids({999, 999, 999}));
}

TEST(ReplyMemory, OutlivesTheProcess) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/replies";
  for (int32_t i = 0; i < 3; ++i) {
    ReplyMemory memory(path);
    for (int32_t j = 0; j < i; ++j) EXPECT_EQ(memory.recall(Ids{j}, reply("yes")), Ids({j, 7}));
    memory.remember(Ids{i}, reply("yes"), {i, 7});
  }
}

TEST(ReplyMemory, TheFileStaysWithinTwiceItsLimit) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/replies";
  {
    ReplyMemory memory(path, 10'000);
    for (int32_t i = 0; i < 1000; ++i) {
      memory.remember(Ids{i % 7}, reply("yes"), {i, i, i});
      ASSERT_LE(std::filesystem::file_size(path), 20'000u + 200);
    }
  }
  EXPECT_EQ(ReplyMemory(path).recall(Ids{999 % 7}, reply("yes")), Ids({999, 999, 999}));
}

// Wherever a file is cut off or spoiled, the records before that place are kept.
TEST(ReplyMemory, ADamagedFileLosesNoMoreThanItMust) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/replies";
  std::vector<size_t> ends;
  for (int32_t i = 0; i < 3; ++i) {
    ReplyMemory(path).remember(Ids{i}, reply("secret text"), {i, 7});
    ends.push_back(std::filesystem::file_size(path));
  }
  const std::string whole = test::read_text(path);
  EXPECT_EQ(whole.find("secret"), whole.npos);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const bool cut : {true, false}) {
      std::string bad = cut ? whole.substr(0, at) : whole;
      if (!cut) bad[at] = static_cast<char>(bad[at] ^ 1);
      test::write_text(path, bad);
      const ReplyMemory memory(path);
      for (size_t i = 0; i < ends.size(); ++i) {
        const auto found = memory.recall(Ids{static_cast<int32_t>(i)}, reply("secret text"));
        EXPECT_EQ(found.has_value(), ends[i] <= at) << "byte " << at << ", record " << i;
      }
    }
  }
}

TEST(ReplyMemory, AFileThatCannotBeWrittenIsNoReasonToFail) {
  ReplyMemory memory("/nonexistent/replies");
  memory.remember(before, reply("yes"), {4});
  EXPECT_EQ(memory.recall(before, reply("yes")), Ids({4}));
}

}  // namespace
}  // namespace lily
