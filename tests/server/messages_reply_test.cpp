// Replies -> events and documents of the Messages API.
#include "server/protocol_fixture.h"

namespace lily::test {
namespace {

using Kind = ReplyEvent::Kind;
using ::testing::ElementsAre;

Parsed request(const std::string& fields = "") {
  return {server::messages_api(),
          json(R"({"max_tokens":50,"messages":[{"role":"user","content":"hi"}])" + fields + "}")};
}

ScriptedReply full_reply() {
  ScriptedReply script;
  script.says(Kind::reasoning, "Let me ").says(Kind::reasoning, "see.").says(Kind::content, "Two ");
  script.says(Kind::content, "calls.").calls(0, "f", {"{\"a\":", "1}"}).calls(1, "g", {"{}"});
  return script.ends(Finish::end_token);
}

TEST(MessagesReply, SequenceOfEvents) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), full_reply());
  EXPECT_THAT(names(events),
              ElementsAre("message_start",                                                     //
                          "content_block_start", "content_block_delta", "content_block_stop",  // thinking
                          "content_block_start", "content_block_delta", "content_block_stop",  // text
                          "content_block_start", "content_block_delta", "content_block_stop",  // f
                          "content_block_start", "content_block_delta", "content_block_stop",  // g
                          "message_delta", "message_stop"));
  std::string kinds;
  for (const OrderedJson& event : all(events, "content_block_delta")) {
    kinds += event["index"].dump() + " " + event["delta"]["type"].get<std::string>() + "\n";
  }
  EXPECT_EQ(kinds,
            "0 thinking_delta\n0 thinking_delta\n0 signature_delta\n1 text_delta\n1 text_delta\n"
            "2 input_json_delta\n2 input_json_delta\n3 input_json_delta\n");
}

TEST(MessagesReply, BlocksStartEmpty) {
  Parsed parsed = request();
  const auto starts = all(stream(parsed.format(), full_reply()), "content_block_start");
  ASSERT_EQ(starts.size(), 4u);
  EXPECT_EQ(starts[0]["content_block"].dump(), R"({"type":"thinking","thinking":"","signature":""})");
  EXPECT_EQ(starts[1]["content_block"].dump(), R"({"type":"text","text":""})");
  EXPECT_EQ(starts[2]["content_block"]["input"], OrderedJson::object());
  EXPECT_EQ(starts[3]["content_block"]["name"], "g");
  EXPECT_EQ(starts[3]["index"], 3);
  EXPECT_NE(starts[2]["content_block"]["id"], starts[3]["content_block"]["id"]);  // TC-20
}

TEST(MessagesReply, Document) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), full_reply());
  const OrderedJson document = parsed.format().document();
  EXPECT_EQ(document["id"], all(events, "message_start")[0]["message"]["id"]);
  EXPECT_EQ(document["content"][0]["thinking"], "Let me see.");
  EXPECT_FALSE(document["content"][0]["signature"].get<std::string>().empty());
  EXPECT_EQ(document["content"][1]["text"], "Two calls.");
  EXPECT_EQ(document["content"][2]["input"].dump(), R"({"a":1})");
  EXPECT_EQ(document["content"][3]["input"].dump(), "{}");
  EXPECT_EQ(document["stop_reason"], "tool_use");
  EXPECT_EQ(document["usage"].dump(),
            R"({"input_tokens":40,"cache_creation_input_tokens":0,"cache_read_input_tokens":60,"output_tokens":11,)"
            R"("output_tokens_details":{"thinking_tokens":2}})");
  const OrderedJson delta = all(events, "message_delta")[0];
  EXPECT_EQ(delta["usage"], document["usage"]);
  EXPECT_EQ(delta["delta"]["stop_reason"], "tool_use");
}

TEST(MessagesReply, StopReasons) {
  const auto reason = [](Finish finish, const std::string& stops) {
    Parsed parsed = request(",\"stop_sequences\":" + stops);
    const auto events = stream(parsed.format(), ScriptedReply().says(Kind::content, "a").ends(finish));
    const OrderedJson document = parsed.format().document();
    EXPECT_EQ(all(events, "message_delta")[0]["delta"]["stop_sequence"], document["stop_sequence"]);
    return document["stop_reason"].dump() + " " + document["stop_sequence"].dump();
  };
  EXPECT_EQ(reason(Finish::end_token, "[]"), "\"end_turn\" null");
  EXPECT_EQ(reason(Finish::length, "[]"), "\"max_tokens\" null");
  EXPECT_EQ(reason(Finish::context_full, "[]"), "\"max_tokens\" null");
  EXPECT_EQ(reason(Finish::stop_string, R"(["END"])"), "\"stop_sequence\" \"END\"");
  EXPECT_EQ(reason(Finish::stop_string, R"(["END","."])"), "\"stop_sequence\" null");
}

TEST(MessagesReply, TH_01_CutInThought) {
  Parsed parsed = request();
  stream(parsed.format(), ScriptedReply().says(Kind::reasoning, "Hm").ends(Finish::length));
  ASSERT_EQ(parsed.format().document()["content"].size(), 1u);
  EXPECT_EQ(parsed.format().document()["content"][0]["type"], "thinking");
}

TEST(MessagesReply, ThinkingOmitted) {
  Parsed parsed = request(R"(,"thinking":{"type":"adaptive","display":"omitted"})");
  const auto events = stream(parsed.format(), full_reply());
  EXPECT_EQ(all(events, "content_block_delta")[0]["delta"]["type"], "signature_delta");
  EXPECT_EQ(parsed.format().document()["content"][0]["thinking"], "");
  EXPECT_EQ(parsed.format().document()["content"][1]["text"], "Two calls.");
}

TEST(MessagesReply, CallThatWasCutDoesNotLookComplete) {
  ScriptedReply script;
  script.says(Kind::call_begin, "f", 0).says(Kind::call_arguments, "{\"cmd\":\"rm -r /tmp", 0);
  const std::vector<ReplyEvent> closed = {{Kind::call_arguments, "\"}", 0}, {Kind::call_end, "", 0}};
  Parsed parsed = request();
  const auto events = stream(parsed.format(), ScriptedReply(script).ends(Finish::length, closed));
  EXPECT_EQ(all(events, "content_block_delta").size(), 1u);
  EXPECT_EQ(all(events, "content_block_stop").size(), 1u);
  EXPECT_EQ(parsed.format().document()["content"][0]["input"], OrderedJson::object());
  EXPECT_EQ(parsed.format().document()["stop_reason"], "max_tokens");

  Parsed whole = request();
  stream(whole.format(), ScriptedReply(script).ends(Finish::end_token, closed));
  EXPECT_EQ(whole.format().document()["content"][0]["input"].dump(), R"({"cmd":"rm -r /tmp"})");
  EXPECT_EQ(whole.format().document()["stop_reason"], "tool_use");
}

TEST(MessagesReply, NothingAtAll) {
  Parsed parsed = request();
  EXPECT_THAT(names(stream(parsed.format(), ScriptedReply().ends(Finish::end_token))),
              ElementsAre("message_start", "message_delta", "message_stop"));
  EXPECT_EQ(parsed.format().document()["content"], OrderedJson::array());
}

TEST(MessagesReply, CN_09_KeepAliveIsAPing) {
  const server::SseEvent ping = request().format().keep_alive();
  EXPECT_EQ(ping.name, "ping");
  EXPECT_EQ(json(ping.data)["type"], "ping");
}

TEST(MessagesReply, Failure) {
  Parsed parsed = request();
  std::vector<server::SseEvent> events;
  parsed.format().begin(events);
  parsed.format().fail({.status = 503, .message = "later"}, events);
  EXPECT_EQ(events.back().name, "error");
  EXPECT_EQ(events.back().data, R"({"type":"error","error":{"type":"overloaded_error","message":"later"}})");
}

// What a client gets, it sends back: the conversation must read as the model wrote it.
TEST(MessagesReply, ComesBackAsTheSameTurn) {
  Parsed parsed = request();
  stream(parsed.format(), full_reply());
  OrderedJson body = json(R"({"max_tokens":5,"messages":[{"role":"user","content":"hi"},{"role":"assistant"}]})");
  body["messages"][1]["content"] = parsed.format().document()["content"];
  Parsed next(server::messages_api(), body);
  EXPECT_EQ(shown(next.chat().messages), "user: hi\nassistant: <Let me see.> Two calls. [f {\"a\":1}] [g {}]\n");

  Parsed other(server::responses_api(), json(R"({"input":"hi"})"));
  stream(other.format(), full_reply());
  OrderedJson input = json(R"({"input":[{"role":"user","content":"hi"}]})");
  const OrderedJson output = other.format().document()["output"];
  for (const OrderedJson& item : output) input["input"].push_back(item);
  Parsed again(server::responses_api(), input);
  EXPECT_EQ(shown(again.chat().messages), shown(next.chat().messages));
}

}  // namespace
}  // namespace lily::test
