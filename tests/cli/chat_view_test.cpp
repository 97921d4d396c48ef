#include "cli/chat_view.h"

#include <gtest/gtest.h>

namespace lily::cli {
namespace {

using Events = std::vector<ReplyEvent>;

struct Outputs {
  std::string out, err;
  bool operator==(const Outputs&) const = default;
};

void PrintTo(const Outputs& outputs, std::ostream* to) {
  *to << "out " << testing::PrintToString(outputs.out) << " err " << testing::PrintToString(outputs.err);
}

Outputs show(const ViewStyle& style, const Events& events) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  ChatView view(style);
  for (const ReplyEvent& event : events) view.show(event);
  view.end_reply();
  Outputs outputs;
  outputs.out = testing::internal::GetCapturedStdout();
  outputs.err = testing::internal::GetCapturedStderr();
  return outputs;
}

const Events thought_and_answer = {{ReplyEvent::Kind::reasoning, "hm"}, {ReplyEvent::Kind::reasoning, " so\n"},
                                   {ReplyEvent::Kind::content, "\n"},   {ReplyEvent::Kind::content, "\nYes"},
                                   {ReplyEvent::Kind::content, ".\n"},  {ReplyEvent::Kind::content, "\nNo. \n"}};

TEST(ChatView, DecoratedDimsTheThought) {
  EXPECT_EQ(show({.decorated = true, .colour = true}, thought_and_answer),
            (Outputs{"\033[2mhm so\033[0m\n\nYes.\n\nNo.\n", ""}));
}

TEST(ChatView, WithoutColourTheThoughtIsNamed) {
  EXPECT_EQ(show({.decorated = true}, thought_and_answer), (Outputs{"Thinking: hm so\n\nYes.\n\nNo.\n", ""}));
}

TEST(ChatView, PlainOutputHoldsTheAnswerAlone) {
  EXPECT_EQ(show({.thoughts = false}, thought_and_answer), (Outputs{"Yes.\n\nNo.\n", ""}));
  EXPECT_EQ(show({.colour = true, .thoughts = true}, thought_and_answer),
            (Outputs{"Yes.\n\nNo.\n", "\033[2mhm so\033[0m\n\n"}));
}

TEST(ChatView, EveryReplyIsALineOfPlainOutput) {
  EXPECT_EQ(show({.thoughts = false}, {}), (Outputs{"\n", ""}));
  EXPECT_EQ(show({.thoughts = false}, {{ReplyEvent::Kind::reasoning, "cut"}}), (Outputs{"\n", ""}));
  EXPECT_EQ(show({.thoughts = true}, {{ReplyEvent::Kind::reasoning, "cut"}}), (Outputs{"\n", "Thinking: cut\n\n"}));
}

TEST(ChatView, AReplyOfWhiteSpaceShowsNothing) {
  EXPECT_EQ(show({.decorated = true, .colour = true},
                 {{ReplyEvent::Kind::reasoning, "\n"}, {ReplyEvent::Kind::content, "\n\n"}}),
            (Outputs{"", ""}));
}

TEST(ChatView, NotesAreForPeople) {
  testing::internal::CaptureStdout();
  ChatView({.decorated = true, .colour = true}).note("fast");
  ChatView({.decorated = true}).note("slow");
  ChatView({}).note("never");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "\033[2mfast\033[0m\nslow\n");
}

}  // namespace
}  // namespace lily::cli
