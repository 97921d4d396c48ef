// The chat as a person meets it: a scripted model behind a real terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "cli/chat.h"
#include "cli/commands.h"
#include "support/scripted_engine.h"
#include "support/terminal.h"

namespace lily::cli {
namespace {

using test::Piped;
using test::run_piped;
using test::ScriptedEngine;
using test::Terminal;
using testing::HasSubstr;
using testing::Not;

constexpr const char* prompt = ">\033[0m ";
constexpr const char* ctrl_c = "\x03";
constexpr const char* ctrl_d = "\x04";

std::string answer_to(const std::string& message) {
  if (message != "count") return "They say " + message + ".\n</think>\n\nYou said: " + message;
  std::string numbers = "Many.\n</think>\n\n";
  for (int i = 0; i < 20000; ++i) numbers += std::to_string(i) + " ";
  return numbers;
}

class ChatTest : public testing::Test {
 protected:
  void SetUp() override {
    data = std::filesystem::path(testing::TempDir()) / ("chat_test" + std::to_string(::getpid()));
    ::setenv("XDG_DATA_HOME", data.c_str(), 1);
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
  }
  void TearDown() override { std::filesystem::remove_all(data); }

  std::function<int()> chat(const ChatSettings& settings = {}, int64_t context = 1 << 20) const {
    return [=, delay = delay] {
      ScriptedEngine scripted(answer_to, context);
      scripted.backend->delay = delay;
      const Result<int> code = run_chat(scripted.engine, settings);
      std::fflush(nullptr);
      return code ? *code : report(code.error());
    };
  }

  std::filesystem::path data;
  std::chrono::milliseconds delay{0};  // of every token
};

TEST_F(ChatTest, AnswersWhatIsTyped) {
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows("Lily · scripted · 36.8 M parameters"));
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("hello\r");
  EXPECT_TRUE(terminal.shows("\033[2mThey say hello.\033[0m\r\n\r\nYou said: hello\r\n"));
  EXPECT_TRUE(terminal.shows("tok/s"));
  terminal.type(ctrl_d);
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST_F(ChatTest, CtrlCStopsTheReplyAndKeepsTheChat) {
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("count\r");
  EXPECT_TRUE(terminal.shows("10 11 12"));
  terminal.type(ctrl_c);
  EXPECT_TRUE(terminal.shows("stopped"));
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("hello\r");
  EXPECT_TRUE(terminal.shows("You said: hello"));
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("/stats\r");
  EXPECT_TRUE(terminal.shows("in 2 turns"));
}

TEST_F(ChatTest, WhatIsTypedDuringAReplyWaitsForThePrompt) {
  delay = std::chrono::milliseconds(5);
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("dally\r");
  EXPECT_TRUE(terminal.shows("They say dally"));
  terminal.type("ahead\r\x04");
  EXPECT_TRUE(terminal.shows("You said: ahead"));
  EXPECT_EQ(terminal.exit_code(), 0);
  EXPECT_THAT(terminal.output(), HasSubstr("You said: dally\r\n"));  // nothing in the middle of it
}

TEST_F(ChatTest, CtrlCAtThePromptGivesUpTheLineAndTwiceQuits) {
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("abc");
  EXPECT_TRUE(terminal.shows("abc"));
  terminal.type(ctrl_c);
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("xyz\r");
  EXPECT_TRUE(terminal.shows("You said: xyz\r\n"));
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type(ctrl_c);
  EXPECT_TRUE(terminal.shows("again or Ctrl-D quits"));
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type(ctrl_c);
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST_F(ChatTest, Commands) {
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("/help\r");
  EXPECT_TRUE(terminal.shows("/nothink"));
  terminal.type("/unheard of\r");
  EXPECT_TRUE(terminal.shows("/unheard: no such command; /help lists them"));
  terminal.type("/nothink\r");
  EXPECT_TRUE(terminal.shows("Thinking is off"));
  terminal.type("//etc\r");
  EXPECT_TRUE(terminal.shows("You said: /etc"));
  EXPECT_THAT(terminal.output(), Not(HasSubstr("They say")));
  terminal.type("/think\r");
  EXPECT_TRUE(terminal.shows("Thinking is on"));
  terminal.type("hm\r");
  EXPECT_TRUE(terminal.shows("They say hm."));
  terminal.type("/system Be kind.\r");
  EXPECT_TRUE(terminal.shows("System message set"));
  terminal.type("/system\r");
  EXPECT_TRUE(terminal.shows("System message: Be kind."));
  terminal.type("/reset\r");
  EXPECT_TRUE(terminal.shows("A new conversation"));
  terminal.type("/stats\r");
  EXPECT_TRUE(terminal.shows("in 0 turns"));
  terminal.type("/quit\r");
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST_F(ChatTest, PastedLineBreaksAndABackslashContinueTheMessage) {
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows("\033[?2004h"));
  terminal.type("\033[200~one\rtwo\n\033[201~");
  EXPECT_TRUE(terminal.shows("two"));
  terminal.type("three\r");
  EXPECT_TRUE(terminal.shows("You said: one\r\ntwo\r\nthree\r\n"));
  terminal.type("four\\\r");
  EXPECT_TRUE(terminal.shows("…"));
  terminal.type("fünf\r");
  EXPECT_TRUE(terminal.shows("You said: four\r\nfünf\r\n"));
}

TEST_F(ChatTest, HistoryOutlivesTheProgram) {
  {
    Terminal terminal(chat());
    EXPECT_TRUE(terminal.shows(prompt));
    terminal.type("remember me\r");
    EXPECT_TRUE(terminal.shows("tok/s"));
    terminal.type(ctrl_d);
    EXPECT_EQ(terminal.exit_code(), 0);
  }
  EXPECT_EQ(std::filesystem::status(data / "lily/chat_history").permissions() & std::filesystem::perms::mask,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("\033[A\r");
  EXPECT_TRUE(terminal.shows("You said: remember me"));
}

TEST_F(ChatTest, NothingIsReadTwice) {
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("first\r");
  EXPECT_TRUE(terminal.shows("You said: first"));
  terminal.type("second\r");
  EXPECT_TRUE(terminal.shows("You said: second"));
  terminal.type("/stats\r");
  // The prompts: "<|im_start|>user\nfirst<|im_end|>\n<|im_start|>assistant\n<think>\n" is 26 tokens, the second with
  // its 7-letter message and the two that close the first reply 29; bytes are tokens here.
  EXPECT_TRUE(terminal.shows("Prompts: 55 tokens read"));
}

TEST_F(ChatTest, AFullContextIsSaidAndTheChatGoesOn) {
  Terminal terminal(chat({}, 100));
  EXPECT_TRUE(terminal.shows(prompt));
  terminal.type("one\r");
  EXPECT_TRUE(terminal.shows("You said: one"));
  terminal.type("a message that does not fit any more\r");
  EXPECT_TRUE(terminal.shows("context is full"));
  terminal.type("/reset\r");
  EXPECT_TRUE(terminal.shows("A new conversation"));
  terminal.type("two\r");
  EXPECT_TRUE(terminal.shows("You said: two"));
  terminal.type("count\r");
  EXPECT_TRUE(terminal.shows("The context of 100 tokens is full: /reset"));
}

TEST_F(ChatTest, NoColorMeansNoEscapeCodesInText) {
  ::setenv("NO_COLOR", "1", 1);
  Terminal terminal(chat());
  EXPECT_TRUE(terminal.shows("> "));
  terminal.type("hello\r");
  EXPECT_TRUE(terminal.shows("Thinking: They say hello.\r\n\r\nYou said: hello\r\n"));
  EXPECT_TRUE(terminal.shows("tok/s"));
  EXPECT_THAT(terminal.output(), Not(HasSubstr("\033[2m")));
}

TEST_F(ChatTest, PipedLinesAreMessagesAndTheOutputHoldsTheAnswers) {
  const Piped run = run_piped(chat(), "hello\n\nMy name\\\nis Ada\r\n/nothink\nbye");
  EXPECT_EQ(run.out, "You said: hello\nYou said: My name\nis Ada\nYou said: bye\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.code, 0);
}

TEST_F(ChatTest, PipedErrorsEndIt) {
  const Piped run = run_piped(chat({}, 60), "hello\nand now something that is too long for it\nbye\n");
  EXPECT_EQ(run.out, "You said: hello\n");
  EXPECT_THAT(run.err, HasSubstr("lily: context: context is full"));
  EXPECT_EQ(run.code, 2);
}

TEST_F(ChatTest, OnePromptIsAnsweredWithoutReadingInput) {
  ChatSettings settings;
  settings.prompt = "/help";  // a message here, not a command
  const Piped run = run_piped(chat(settings), "not read\n");
  EXPECT_EQ(run.out, "You said: /help\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.code, 0);
}

TEST_F(ChatTest, CtrlCEndsAOnePromptReply) {
  ChatSettings settings;
  settings.prompt = "count";
  Terminal terminal(chat(settings));
  EXPECT_TRUE(terminal.shows("10 11 12"));
  terminal.type(ctrl_c);
  EXPECT_EQ(terminal.exit_code(), 130);
}

}  // namespace
}  // namespace lily::cli
