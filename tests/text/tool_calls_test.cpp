// Tool calls in replies, in the template's form and in all the forms into which models stray; each in every cut.
#include <gtest/gtest.h>

#include "split_reply.h"

namespace lily::test {
namespace {

const OrderedJson integer = {{"type", "integer"}}, string = {{"type", "string"}};
const std::vector<OrderedJson> tools = {tool("f", {{"a", integer}, {"b", string}}),
                                        tool("g", {{"x", string}}),
                                        tool("none"),
                                        tool("read", {{"path", string}, {"limit", integer}, {"offset", integer}}),
                                        tool("write", {{"path", string}, {"content", string}}),
                                        tool("run", {{"cmd", {{"type", "object"}}}})};

SeenReply direct(const std::string& reply) { return SplitReply(reply, tools).run(); }
SeenReply thinking(const std::string& reply) { return SplitReply(reply, tools, true).run(); }
SeenReply calls(std::vector<SeenCall> list, const std::string& content = "", const std::string& reasoning = "") {
  return {reasoning, content, std::move(list)};
}
SeenReply content(const std::string& text) { return {"", text, {}}; }

const std::string f1 = xml_call("f", {{"a", "1"}});
const SeenCall f1_seen = {"f", R"({"a":1})"};

TEST(ToolCalls, TC_01_ArgumentsInAnyOrder) {
  EXPECT_EQ(direct(xml_call("read", {{"limit", "5"}, {"path", "a.txt"}})),
            calls({{"read", R"({"limit":5,"path":"a.txt"})"}}));
  EXPECT_EQ(direct(xml_call("read", {{"offset", "7"}, {"path", "a"}, {"limit", "5"}})),
            calls({{"read", R"({"offset":7,"path":"a","limit":5})"}}));
}

TEST(ToolCalls, TC_02_ProseBeforeTheCall) {
  EXPECT_EQ(thinking("reason</think>\n\nI will look.\n\n" + f1), calls({f1_seen}, "I will look.", "reason"));
  EXPECT_EQ(thinking("reason</think>\n\n" + f1 + "\n"), calls({f1_seen}, "", "reason"));
  EXPECT_EQ(direct("One\n\n two. " + f1 + "\n\nDone. \n"), calls({f1_seen}, "One\n\n two.Done. \n"));
}

TEST(ToolCalls, TC_04_ACallThatEndsAnOpenThought) {
  const std::string call = xml_call("read", {{"path", "/a"}});
  const SeenCall seen = {"read", R"({"path":"/a"})"};
  EXPECT_EQ(thinking("need the file\n" + call), calls({seen}, "", "need the file"));
  EXPECT_EQ(thinking("need the file\n" + call + "</think>"), calls({seen}, "", "need the file"));
  EXPECT_EQ(thinking("need the file\n" + call + "\n</think>\n\n"), calls({seen}, "", "need the file"));
  EXPECT_EQ(thinking(call + "\n" + f1), calls({seen, f1_seen}));
  EXPECT_EQ(thinking("a < b <tool_call> no\n" + call), calls({seen}, "", "a < b <tool_call> no"));
  EXPECT_EQ(thinking("bare\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>"), calls({f1_seen}, "", "bare"));
  EXPECT_EQ(thinking("json <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>"),
            calls({f1_seen}, "", "json"));
  // Only one that is whole, of a declared function, and last.
  for (const std::string& thought :
       {"so\n" + xml_call("unknown", {{"a", "1"}}), "so\n" + f1 + "\nor not", "so\n" + f1.substr(0, f1.size() - 24),
        std::string("so <tool_call>"), "so " + f1 + " \n<"}) {
    EXPECT_EQ(thinking(thought), (SeenReply{thought, "", {}}));
  }
  EXPECT_EQ(thinking("a " + f1 + " b\n" + call), calls({seen}, "", "a " + f1 + " b"));
}

TEST(ToolCalls, TC_05_DraftsStayReasoning) {
  const std::string draft = "I write <function=...> like\n" + f1;
  EXPECT_EQ(thinking(draft + "</think>\n\n" + f1), calls({f1_seen}, "", draft));
  EXPECT_EQ(thinking(draft + "\nok</think>\n\n" + f1), calls({f1_seen}, "", draft + "\nok"));
  EXPECT_EQ(thinking(draft + "\n</think>\n\nNo call."), calls({}, "No call.", draft + "\n"));
  EXPECT_EQ(thinking("x <tool_call></think>y"), calls({}, "y", "x <tool_call>"));
}

TEST(ToolCalls, TC_07_PythonStyle) {
  EXPECT_EQ(direct(xml_call("run", {{"cmd", "{'k': 'v', 'ok': True, 'n': None}"}})),
            calls({{"run", R"({"cmd":{"k":"v","ok":true,"n":null}})"}}));
}

TEST(ToolCalls, TC_10_TextForAnObject) {
  std::string shell;
  while (shell.size() < 400)
    shell += "for f in *.{c,h}; do\n  echo \"$f\\n\" '{' | sed 's/[{]/(/' > \"${f%.c}\"\ndone\n";
  const SeenReply seen = direct(xml_call("run", {{"cmd", shell}}) + "\n" + f1);
  ASSERT_EQ(seen.calls.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(seen.calls[0].arguments)["cmd"], shell);
  EXPECT_EQ(seen.calls[1], f1_seen);
}

TEST(ToolCalls, TC_11_WithoutTheWrapper) {
  const std::string bare = "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>";
  EXPECT_EQ(direct(bare), calls({f1_seen}));
  EXPECT_EQ(direct(bare + "\n</tool_call>"), calls({f1_seen}));
  EXPECT_EQ(direct("Let me.\n\n" + bare + "\n" + bare), calls({f1_seen, f1_seen}, "Let me."));
  EXPECT_EQ(direct("```\nx\n```\n" + bare), calls({f1_seen}, "```\nx\n```"));
  EXPECT_EQ(direct("Let me. " + bare), calls({f1_seen}, "Let me."));
  EXPECT_EQ(direct("<function=none></function>"), calls({{"none", "{}"}}));
  const std::string unknown = "<function=unknown>\n<parameter=a>\n1\n</parameter>\n</function>";
  for (const std::string& text :
       {"```\n" + bare + "\n```", "```xml\n" + bare, "~~~\n" + bare + "\n~~~\n", unknown, "`" + bare + "`",
        std::string("Write <function=f> for f."), std::string("<function=f>"), "````\n```\n" + bare + "\n```\n````",
        "   ```\n" + bare}) {
    EXPECT_EQ(direct(text), content(text));
  }
}

TEST(ToolCalls, WithoutDeclaredFunctionsAllIsContent) {
  EXPECT_EQ(SplitReply("a\n" + f1 + "\n", {}).run(), content("a\n" + f1 + "\n"));
}

TEST(ToolCalls, UndeclaredFunctionsInAWrapperAreCalls) {
  EXPECT_EQ(direct(xml_call("unknown", {{"a", "1"}})), calls({{"unknown", R"({"a":"1"})"}}));
  EXPECT_EQ(direct("<tool_call>{\"name\":\"unknown\"}</tool_call>"), calls({{"unknown", "{}"}}));
}

TEST(ToolCalls, WhatIsNoCallIsContent) {
  for (const char* text :
       {"<tool_call>", "<tool_call>\n", "<tool_call> hi", "a <tool_call>\n<function=", "</tool_call>",
        "<tool_call>\n<function=a b>\n", "<tool_call>{\"name\": 3}</tool_call> x", "<tool_call>{]",
        "<tool_call>\n{\"a\": 1}\n</tool_call>", "<", "a <b> <functio", "</function> </parameter>",
        "<tool_call>\n{\"name\": \"f\", \"argum", "The <tool_call><function=...> form.",
        "```\n<tool_call>\n<function=example>\n<parameter=a>\n1\n</parameter>\n</function>\n"
        "</tool_call>\n```\n",
        "x \n\n", " leading"}) {
    EXPECT_EQ(direct(text), content(text));
  }
}

TEST(ToolCalls, TC_13_ClosingTagsInValues) {
  const std::string line = "Use </parameter> and </function> and </tool_call> here";
  const std::string nested = xml_call("f", {{"a", "1"}});
  for (const std::string& value :
       {"# Doc\n" + line + "\nmore\nlines", std::string("x </parameter></function></tool_call> y\nz"),
        std::string("x </parameter></function></tool_call>\nz"), std::string("a\n</parameter>\nb"),
        std::string("a\n</function>\nb\n</tool_call>\nc"), std::string("a\n</parameter>\n</function>\n</tool_call>\nb"),
        std::string("</parameter>\nb"), std::string("a\n</parameter>\n</function>\n</tool_call>"),
        "Example:\n" + nested + "\nEnd.", nested, nested + "\n" + nested, "Example:\n```\n" + nested + "\n```\n",
        std::string("if a<b && c</d/>"), std::string("\n</parameter>"), std::string("<parameter=q>"),
        std::string("<tool_call>\nno call\n</tool_call>\nx")}) {
    const SeenReply seen = direct(xml_call("write", {{"path", "a.md"}, {"content", value}}));
    ASSERT_EQ(seen.calls.size(), 1u) << value;
    const auto arguments = nlohmann::json::parse(seen.calls[0].arguments);
    EXPECT_EQ(arguments, nlohmann::json({{"path", "a.md"}, {"content", value}})) << value;
    EXPECT_EQ(seen.content, "");
    // The same with more to come.
    const SeenReply two = direct(xml_call("write", {{"content", value}, {"path", "a.md"}}) + "\n" + f1);
    ASSERT_EQ(two.calls.size(), 2u) << value;
    EXPECT_EQ(nlohmann::json::parse(two.calls[0].arguments), arguments) << value;
    EXPECT_EQ(two.calls[1], f1_seen);
  }
}

TEST(ToolCalls, TC_14_EverySplit) {
  EXPECT_EQ(direct("Fine: <b>\n\n" + xml_call("f", {{"a", "-12"}, {"b", "<é \"灯\">\n\n</p"}}) + "\n" + f1 + "\n"),
            calls({{"f", R"({"a":-12,"b":"<é \"灯\">\n\n</p"})"}, f1_seen}, "Fine: <b>"));
}

// However many closing tags and line breaks are missing.
TEST(ToolCalls, MissingClosingTags) {
  for (int missing = 0; missing < 8; ++missing) {
    for (const std::string line : {"\n", ""}) {
      const std::string end = (missing & 1 ? "" : "</parameter>" + line) + (missing & 2 ? "" : "</function>" + line) +
                              (missing & 4 ? "" : "</tool_call>");
      const std::string open = "<tool_call>" + line + "<function=f>" + line + "<parameter=b>" + line;
      const SeenCall x = {"f", R"({"b":"x"})"}, y = {"f", R"({"b":"y"})"};
      EXPECT_EQ(direct(open + "x" + line + end), calls({x})) << missing;
      EXPECT_EQ(direct(open + "x" + line + end + (end.empty() ? "" : line) + open + "y" + line + end), calls({x, y}))
          << missing;
      if (missing < 4) {
        EXPECT_EQ(direct(open + "x" + line + end + " Done."), calls({x}, "Done.")) << missing;
      }
    }
  }
  EXPECT_EQ(
      direct("<tool_call>\n<function=read>\n<parameter=path>\na\n<parameter=limit>\n5\n</function>\n</tool_call>"),
      calls({{"read", R"({"path":"a","limit":5})"}}));
  EXPECT_EQ(direct("<tool_call>\n<function=f>\n<parameter=b>\nx</parameter>\n</function>\n</tool_call>"),
            calls({{"f", R"({"b":"x"})"}}));
}

TEST(ToolCalls, SeveralFunctionsInAWrapper) {
  const std::string f = "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n";
  EXPECT_EQ(direct("<tool_call>\n" + f + f + "<function=other>\n</function>\n</tool_call>"),
            calls({f1_seen, f1_seen, {"other", "{}"}}));
  EXPECT_EQ(direct("<tool_call>\n<function=none>\n" + f + "</tool_call>"), calls({{"none", "{}"}, f1_seen}));
}

TEST(ToolCalls, TextInACallIsNotLost) {
  EXPECT_EQ(
      direct("<tool_call>\n<function=f>\nhm, <b>\nso\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\nx"),
      calls({f1_seen}, "hm, <b>\nso\nx"));
  EXPECT_EQ(direct("<tool_call>\n<function=g>\n<parameter=x>\n1\n</parameter>\nhm\n</function>\n</tool_call>"),
            calls({{"g", R"({"x":"1\n</parameter>\nhm"})"}}));
}

TEST(ToolCalls, JsonInAWrapper) {
  EXPECT_EQ(direct("Now:\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"),
            calls({{"f", R"({"a": 1})"}}, "Now:"));
  EXPECT_EQ(direct("<tool_call>{\"arguments\": {\"b\": \"}</tool_call>\"}, \"name\": \"f\"}</tool_call>"),
            calls({{"f", R"({"b": "}</tool_call>"})"}}));
  EXPECT_EQ(direct("<tool_call>{'name': 'f', 'parameters': {'a': None}}</tool_call>"), calls({{"f", R"({"a":null})"}}));
  EXPECT_EQ(direct("<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": 1}\"}</tool_call>"),
            calls({{"f", R"({"a": 1})"}}));
  EXPECT_EQ(direct("<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}</tool_call>"), calls({f1_seen}));
  EXPECT_EQ(direct("<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}"), calls({f1_seen}));
  EXPECT_EQ(direct("<tool_call>\n{\"name\":\"f\",\"arguments\":{\"a\":1}}\n{\"name\":\"g\"}\n</tool_call> x"),
            calls({f1_seen, {"g", "{}"}}, "x"));
  EXPECT_EQ(direct("<tool_call>\n<function=f>\n{\"a\": 1}\n</function>\n</tool_call>"), calls({f1_seen}));
}

TEST(ToolCalls, TC_16_ACallThatIsCutIsStillAnObject) {
  const std::string call = xml_call("f", {{"b", "x\"y"}, {"a", "12"}});
  for (size_t size = 0; size <= call.size(); ++size) {
    const SeenReply seen = SplitReply(call.substr(0, size), tools).run();  // SeenEvents looks at the JSON
    if (!seen.calls.empty()) {
      const std::string b = nlohmann::json::parse(seen.calls[0].arguments).value("b", "");
      EXPECT_EQ(b, std::string("x\"y").substr(0, b.size()));
    }
    EXPECT_EQ(seen.calls.size(), size >= std::string("<tool_call>\n<function=f>").size());
    EXPECT_EQ(seen.content, seen.calls.empty() ? call.substr(0, size) : "");
  }
}

TEST(ToolCalls, TC_19_StringsComeAsTheyAreWritten) {
  const Tokenizer tokenizer = byte_tokenizer();
  StreamSplitter splitter(tokenizer, {}, {tools, {}});
  std::vector<ReplyEvent> events;
  const auto push = [&](const std::string& text) {
    events.clear();
    for (const unsigned char byte : text) splitter.push(byte, events);
    std::string joined;
    for (const ReplyEvent& event : events) joined += event.text;
    return joined;
  };
  EXPECT_EQ(push("<tool_call>\n<function=write>"), "write");
  EXPECT_EQ(splitter.channel(), Channel::tool_call);
  EXPECT_EQ(push("\n<parameter=content>"), "{\"content\":");
  EXPECT_EQ(push("\nab"), "\"ab");
  EXPECT_EQ(push("\"c"), "\\\"c");
  EXPECT_EQ(push("\n"), "");  // may be the last one
  EXPECT_EQ(push("d < e"), "\\nd < e");
  EXPECT_EQ(push("</para"), "");
  EXPECT_EQ(push("graph>"), "</paragraph>");
  EXPECT_EQ(push("\n</parameter>\n<parameter=path>"), "\",\"path\":");
  EXPECT_EQ(push("\nx\n</parameter>\n</function>\n</tool_call>"), "\"x");
  events.clear();
  splitter.finish(events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0], (ReplyEvent{ReplyEvent::Kind::call_arguments, "\"}", 0}));
  EXPECT_EQ(events[1], (ReplyEvent{ReplyEvent::Kind::call_end, "", 0}));
}

TEST(ToolCalls, TC_20_CallsAreCounted) {
  EXPECT_EQ(direct(f1 + "\n" + xml_call("f", {{"a", "2"}})), calls({f1_seen, {"f", R"({"a":2})"}}));
}

TEST(ToolCalls, TC_23_OnOneLine) {
  EXPECT_EQ(
      direct("<tool_call><function=f><parameter=a>1</parameter><parameter=b>x</parameter></function></tool_call>"),
      calls({{"f", R"({"a":1,"b":"x"})"}}));
  EXPECT_EQ(direct("<tool_call> <function=g> <parameter=x>a b</parameter> </function> </tool_call>"),
            calls({{"g", R"({"x":"a b"})"}}));
}

TEST(ToolCalls, TK_02_CharactersStayWhole) {
  EXPECT_EQ(thinking("é灯🙂</think>" + xml_call("f", {{"b", "é灯🙂"}})),
            calls({{"f", R"({"b":"é灯🙂"})"}}, "", "é灯🙂"));
  EXPECT_EQ(direct("<tool_call>\n<function=f>\n<parameter=b>\nx\xF0\x9F"), calls({{"f", "{\"b\":\"x\xEF\xBF\xBD\"}"}}));
}

TEST(ToolCalls, StopStringsAreForContent) {
  const auto run = [](const std::string& reply, const std::string& stop) {
    return SplitReply(reply, tools, false, {stop}).run();
  };
  EXPECT_EQ(run("ok\n\n" + xml_call("f", {{"b", "STOP"}}), "STOP"), calls({{"f", R"({"b":"STOP"})"}}, "ok"));
  for (const char* stop : {"<", "tool", "\n\n", "</"}) {
    EXPECT_EQ(run("ok\n\n" + f1, stop), calls({f1_seen}, "ok")) << stop;
  }
  EXPECT_EQ(run("a <b", "<"), (SeenReply{"", "a ", {}, true}));
  EXPECT_EQ(run("a STOP b\n" + f1, "STOP"), (SeenReply{"", "a ", {}, true}));
  EXPECT_EQ(run(f1 + "\nSTOP", "STOP"), (SeenReply{"", "", {f1_seen}, true}));
  EXPECT_EQ(run("a\n\nb", "\n\n"), (SeenReply{"", "a", {}, true}));
}

}  // namespace
}  // namespace lily::test
