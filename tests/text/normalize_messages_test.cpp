#include <gtest/gtest.h>

#include <random>

#include "text/chat.h"

namespace lily {
namespace {

Message system(const std::string& text) { return {Role::system, text, "", {}}; }
Message user(const std::string& text) { return {Role::user, text, "", {}}; }
Message tool(const std::string& text) { return {Role::tool, text, "", {}}; }
Message assistant(const std::string& text, const std::string& reasoning = "", std::vector<ToolCall> calls = {}) {
  return {Role::assistant, text, reasoning, std::move(calls)};
}
Message calling(OrderedJson arguments, const std::string& name = "f") {
  return assistant("", "", {{"id", name, std::move(arguments)}});
}

// One line a message: s:text, u:text, a:reasoning|text|f(arguments)..., t:text.
std::string shape(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : normalize_messages(messages)) {
    text += std::string(1, "suat"[static_cast<int>(message.role)]) + ":";
    if (message.role == Role::assistant) text += message.reasoning + "|";
    text += message.content;
    for (const ToolCall& call : message.tool_calls) text += "|" + call.name + call.arguments.dump();
    text += "\n";
  }
  return text;
}

TEST(NormalizeMessages, CT_02_LeadingSystemMessagesAreJoined) {
  EXPECT_EQ(shape({system("a"), system("b"), user("c"), user("d")}), "s:a\n\nb\nu:c\nu:d\n");
  EXPECT_EQ(shape({system(""), system("b"), system(" "), user("c")}), "s:b\nu:c\n");
}

TEST(NormalizeMessages, CT_03_LateSystemMessagesBecomeUserMessages) {
  EXPECT_EQ(shape({system("a"), system("b"), user("c"), system("d")}), "s:a\n\nb\nu:c\nu:d\n");
  EXPECT_EQ(shape({user("c"), system("d"), system("e"), assistant("f")}), "u:c\nu:d\nu:e\na:|f\n");
  EXPECT_EQ(shape({assistant("c"), system("d")}), "u:\na:|c\nu:d\n");
}

TEST(NormalizeMessages, CT_05_ArgumentsBecomeObjects) {
  const std::pair<OrderedJson, const char*> cases[] = {
      {R"({"city":"Paris"})", R"({"city":"Paris"})"},
      {R"({"z":1,"a":{"k":[true,null]}})", R"({"z":1,"a":{"k":[true,null]}})"},
      {R"({"ä":"灯"})", R"({"ä":"灯"})"},
      {{{"city", "Paris"}}, R"({"city":"Paris"})"},
      {"", "{}"},
      {nullptr, "{}"},
      {"null", "{}"},
      {"not json", R"({"arguments":"not json"})"},
      {"[1]", R"({"arguments":"[1]"})"},
      {OrderedJson::array({1}), R"({"arguments":[1]})"},
      {3, R"({"arguments":3})"}};
  for (const auto& [arguments, expected] : cases) {
    EXPECT_EQ(shape({user("q"), calling(arguments)}), std::string("u:q\na:||f") + expected + "\n");
  }
  const std::string deep = "{\"a\":" + std::string(100'000, '[');
  EXPECT_EQ(normalize_messages({user("q"), calling(deep + std::string(100'000, ']') + "}")})[1]
                .tool_calls[0]
                .arguments["arguments"]
                .is_string(),
            true);
}

TEST(NormalizeMessages, CT_06_EmptyContentStays) { EXPECT_EQ(shape({user("")}), "u:\n"); }

TEST(NormalizeMessages, CT_08_AssistantMessagesInARow) {
  EXPECT_EQ(shape({user("q"), calling({}), tool("r"), assistant(""), assistant("x")}), "u:q\na:||f{}\nt:r\na:|x\n");
  // The items of one reply, each sent as a message.
  EXPECT_EQ(shape({user("q"), assistant("", "r"), assistant("x"), calling({}), calling({}, "g")}),
            "u:q\na:r|x|f{}|g{}\n");
  // Replies of their own: joining them would change how the first one is shown.
  EXPECT_EQ(shape({user("q"), assistant("x"), assistant("y")}), "u:q\na:|x\na:|y\n");
  EXPECT_EQ(shape({user("q"), assistant("x"), assistant("y", "r")}), "u:q\na:|x\na:r|y\n");
  EXPECT_EQ(shape({user("q"), calling({}), assistant("y")}), "u:q\na:||f{}\na:|y\n");
}

TEST(NormalizeMessages, CT_09_ReasoningAndCallWithoutText) {
  EXPECT_EQ(shape({user("q"), assistant("", "r", {{"1", "f", {}}}), tool("t"), user("u")}),
            "u:q\na:r||f{}\nt:t\nu:u\n");
}

TEST(NormalizeMessages, EmptyAssistantMessagesAtTheEndGo) {
  EXPECT_EQ(shape({user("q"), assistant(" \n")}), "u:q\n");
  EXPECT_EQ(shape({user("q"), assistant("x"), assistant(""), assistant("")}), "u:q\na:|x\n");
  EXPECT_EQ(shape({assistant("")}), "u:\n");
  EXPECT_EQ(shape({user("q"), assistant(""), user("r")}), "u:q\na:|\nu:r\n");
  EXPECT_EQ(shape({user("q"), assistant("maximum steps reached")}), "u:q\na:|maximum steps reached\n");
  EXPECT_EQ(shape({user("q"), assistant("", "only a thought")}), "u:q\na:only a thought|\n");
}

TEST(NormalizeMessages, AListWithoutAQuestionGetsAnEmptyOne) {
  EXPECT_EQ(shape({}), "u:\n");
  EXPECT_EQ(shape({system("s")}), "s:s\nu:\n");
  EXPECT_EQ(shape({system("s"), calling({}), tool("t")}), "s:s\nu:\na:||f{}\nt:t\n");
  EXPECT_EQ(shape({tool("t")}), "u:\nt:t\n");
  EXPECT_EQ(shape({assistant("hello"), user("q")}), "u:\na:|hello\nu:q\n");
  EXPECT_EQ(shape({user("<tool_response>t</tool_response>")}), "u:\nu:<tool_response>t</tool_response>\n");
}

class RandomLists : public testing::Test {
 protected:
  std::string word() {
    words.push_back("w" + std::to_string(words.size()) + ";");
    const int around = static_cast<int>(random() % 8);
    if (around == 0) return " " + words.back() + "\n";
    if (around == 1) return "<tool_response>" + words.back() + "</tool_response>";
    return words.back();
  }
  std::string maybe_word() {
    constexpr const char* blanks[] = {"", " ", "\n\n"};
    return random() % 3 == 0 ? blanks[random() % 3] : word();
  }
  Message message() {
    switch (random() % 4) {
      case 0: return system(maybe_word());
      case 1: return user(maybe_word());
      case 2: return tool(maybe_word());
      default: break;
    }
    Message reply = assistant(maybe_word(), random() % 2 ? maybe_word() : "");
    for (auto calls = random() % 3; calls > 0; --calls) {
      const OrderedJson object = {{"k", word()}};
      const OrderedJson forms[] = {object, object.dump(), words.back(),
                                   "",     nullptr,       OrderedJson::array({words.back()})};
      const size_t form = random() % 6;
      if (form == 3 || form == 4) words.pop_back();
      reply.tool_calls.push_back({"", "f", forms[form]});
    }
    return reply;
  }
  static std::vector<std::string> turns(const std::vector<Message>& messages) {
    const auto rendered =
        render_turns(normalize_messages(messages), {.preserve_thinking = true, .add_generation_prompt = false});
    EXPECT_TRUE(rendered);
    std::vector<std::string> texts;
    if (rendered) {
      for (const Turn& turn : rendered.value()) {
        texts.emplace_back();
        for (const TextPiece& piece : turn.pieces) texts.back() += piece.text;
      }
    }
    return texts;
  }

  std::mt19937 random{5};
  std::vector<std::string> words;
};

TEST_F(RandomLists, RenderWithoutAnErrorAndLoseNothing) {
  for (int round = 0; round < 3000; ++round) {
    words.clear();
    std::vector<Message> messages;
    for (auto count = random() % 8; count > 0; --count) messages.push_back(message());
    std::string text;
    for (const std::string& turn : turns(messages)) {
      EXPECT_TRUE(turn.starts_with("<|im_start|>"));
      text += turn;
    }
    for (const std::string& word : words) EXPECT_NE(text.find(word), text.npos) << word << " in " << text;
  }
}

// What a longer list may change: an empty question at the end, the last reply by what is joined to it, the results' turn by
// further results, the head by further system messages.
TEST_F(RandomLists, LaterMessagesChangeNoEarlierTurn) {
  for (int round = 0; round < 3000; ++round) {
    std::vector<Message> messages;
    for (auto count = 1 + random() % 8; count > 0; --count) messages.push_back(message());
    const Role last = messages.back().role;
    std::vector<std::string> before = turns(messages);
    messages.push_back(message());
    const std::vector<std::string> after = turns(messages);
    const bool empty_question = before.back() == "<|im_start|>user\n<|im_end|>\n";
    const bool joined = last == messages.back().role && (last == Role::assistant || last == Role::tool);
    if (empty_question || joined) before.pop_back();
    if (!before.empty() && last == Role::system && messages.back().role == Role::system) before.pop_back();
    ASSERT_LE(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i], after[i]) << i;
  }
}

}  // namespace
}  // namespace lily
