// Replies -> events and documents of the Responses API.
#include "server/protocol_fixture.h"

namespace lily::test {
namespace {

using Kind = ReplyEvent::Kind;
using ::testing::ElementsAre;

Parsed request() {
  return {server::responses_api(),
          json(R"({"input":"hi","instructions":"Be brief.","temperature":0.7,"max_output_tokens":50,
                   "tools":[{"type":"function","name":"f"}]})")};
}

// Everything that a reply can hold.
ScriptedReply full_reply() {
  ScriptedReply script;
  script.says(Kind::reasoning, "Let me ").says(Kind::reasoning, "see.").says(Kind::content, "Two ");
  script.says(Kind::content, "calls.").calls(0, "f", {"{\"a\":", "1}"}).calls(1, "f", {"{}"});
  return script.ends(Finish::end_token);
}

TEST(ResponsesReply, SequenceOfEvents) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), full_reply());
  EXPECT_THAT(names(events),
              ElementsAre("response.created", "response.in_progress",                              //
                          "response.output_item.added", "response.content_part.added",             //
                          "response.reasoning_text.delta", "response.reasoning_text.done",         //
                          "response.content_part.done", "response.output_item.done",               //
                          "response.output_item.added", "response.content_part.added",             //
                          "response.output_text.delta", "response.output_text.done",               //
                          "response.content_part.done", "response.output_item.done",               //
                          "response.output_item.added", "response.function_call_arguments.delta",  //
                          "response.function_call_arguments.done", "response.output_item.done",    //
                          "response.output_item.added", "response.function_call_arguments.delta",  //
                          "response.function_call_arguments.done", "response.output_item.done", "response.completed"));
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(json(events[i].data)["sequence_number"], i);
}

TEST(ResponsesReply, ItemsKeepIdsAndIndices) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), full_reply());
  const OrderedJson last = json(events.back().data)["response"];
  const auto added = all(events, "response.output_item.added"), done = all(events, "response.output_item.done");
  ASSERT_EQ(added.size(), 4u);
  for (size_t i = 0; i < added.size(); ++i) {
    EXPECT_EQ(added[i]["output_index"], i);
    EXPECT_EQ(added[i]["item"]["status"], "in_progress");
    EXPECT_EQ(added[i]["item"]["id"], last["output"][i]["id"]);
    EXPECT_EQ(done[i]["item"], last["output"][i]);
  }
  for (const OrderedJson& delta : all(events, "response.output_text.delta")) {
    EXPECT_EQ(delta["item_id"], last["output"][1]["id"]);
    EXPECT_EQ(delta["output_index"], 1);
    EXPECT_EQ(delta["content_index"], 0);
  }
  EXPECT_EQ(all(events, "response.created")[0]["response"]["id"], last["id"]);
}

TEST(ResponsesReply, TC_20_CallsKeepApart) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), full_reply());
  const OrderedJson output = json(events.back().data)["response"]["output"];
  EXPECT_NE(output[2]["call_id"], output[3]["call_id"]);
  EXPECT_NE(output[2]["id"], output[3]["id"]);
  EXPECT_EQ(output[2]["arguments"], R"({"a":1})");
  EXPECT_EQ(output[3]["arguments"], "{}");
  std::string first;
  for (const OrderedJson& delta : all(events, "response.function_call_arguments.delta")) {
    if (delta["output_index"] == 2) first += delta["delta"].get<std::string>();
  }
  EXPECT_EQ(first, R"({"a":1})");
}

TEST(ResponsesReply, DocumentIsTheLastEvent) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), full_reply());
  const OrderedJson document = parsed.format().document();
  EXPECT_EQ(document, json(events.back().data)["response"]);
  EXPECT_EQ(document["object"], "response");
  EXPECT_EQ(document["status"], "completed");
  EXPECT_EQ(document["model"], "tiny");
  EXPECT_EQ(document["instructions"], "Be brief.");
  EXPECT_EQ(document["temperature"].dump(), "0.7");
  EXPECT_EQ(document["max_output_tokens"], 50);
  EXPECT_EQ(document["output"][0]["summary"], OrderedJson::array());
  EXPECT_EQ(document["output"][0]["content"].dump(), R"([{"type":"reasoning_text","text":"Let me see."}])");
  EXPECT_EQ(document["output"][1]["content"][0]["text"], "Two calls.");
  EXPECT_EQ(document["usage"].dump(),
            R"({"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":0},)"
            R"("output_tokens":11,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":111})");
}

TEST(ResponsesReply, TH_01_CutInThought) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), ScriptedReply().says(Kind::reasoning, "Hm").ends(Finish::length));
  EXPECT_EQ(events.back().name, "response.incomplete");
  const OrderedJson document = parsed.format().document();
  EXPECT_EQ(document["status"], "incomplete");
  EXPECT_EQ(document["incomplete_details"]["reason"], "max_output_tokens");
  ASSERT_EQ(document["output"].size(), 1u);
  EXPECT_EQ(document["output"][0]["type"], "reasoning");
  EXPECT_EQ(document["output"][0]["status"], "incomplete");
}

TEST(ResponsesReply, NothingAtAll) {
  Parsed parsed = request();
  const auto events = stream(parsed.format(), ScriptedReply().ends(Finish::end_token));
  EXPECT_THAT(names(events), ElementsAre("response.created", "response.in_progress", "response.completed"));
  EXPECT_EQ(parsed.format().document()["output"], OrderedJson::array());
}

// A client that acts on `done` would run half a command.
TEST(ResponsesReply, CallThatWasCutIsNeverDone) {
  ScriptedReply script;
  script.says(Kind::call_begin, "f", 0).says(Kind::call_arguments, "{\"cmd\":\"rm -r /tmp", 0);
  const std::vector<ReplyEvent> closed = {{Kind::call_arguments, "\"}", 0}, {Kind::call_end, "", 0}};
  for (const Finish finish : {Finish::length, Finish::context_full, Finish::cancelled}) {
    Parsed parsed = request();
    const auto events = stream(parsed.format(), ScriptedReply(script).ends(finish, closed));
    EXPECT_TRUE(all(events, "response.output_item.done").empty());
    EXPECT_TRUE(all(events, "response.function_call_arguments.done").empty());
    EXPECT_EQ(parsed.format().document()["output"][0]["status"], "incomplete");
  }
  Parsed parsed = request();  // the model stopped by itself: the call is what it meant
  const auto events = stream(parsed.format(), ScriptedReply(script).ends(Finish::end_token, closed));
  EXPECT_EQ(all(events, "response.output_item.done")[0]["item"]["arguments"], R"({"cmd":"rm -r /tmp"})");
}

TEST(ResponsesReply, TextHeldBackToTheEndIsShown) {
  Parsed parsed = request();
  ScriptedReply script;
  script.says(Kind::content, "a <").ends(Finish::length, {{Kind::content, "tool", -1}});
  stream(parsed.format(), script);
  EXPECT_EQ(parsed.format().document()["output"][0]["content"][0]["text"], "a <tool");
}

TEST(ResponsesReply, Failure) {
  Parsed parsed = request();
  const server::ApiError error{
      .status = 400, .type = "invalid_request_error", .code = "context_length_exceeded", .message = "long"};
  std::vector<server::SseEvent> events;
  parsed.format().fail(error, events);  // before anything else
  EXPECT_THAT(names(events), ElementsAre("response.created", "response.in_progress", "response.failed"));
  const OrderedJson response = json(events.back().data)["response"];
  EXPECT_EQ(response["status"], "failed");
  EXPECT_EQ(response["error"].dump(), R"({"code":"context_length_exceeded","message":"long"})");

  Parsed late = request();
  events.clear();
  late.format().begin(events);
  const std::vector<ReplyStep> steps = ScriptedReply().says(Kind::call_begin, "f", 0).steps;
  for (const ReplyStep& step : steps) late.format().step(0, step, events);
  late.format().fail({.status = 500, .message = "broke"}, events);
  EXPECT_EQ(json(events.back().data)["response"]["error"]["code"], "server_error");
  EXPECT_TRUE(all(events, "response.output_item.done").empty());
}

TEST(ResponsesReply, CN_09_KeepAliveIsAComment) { EXPECT_EQ(request().format().keep_alive().name, ":"); }

TEST(ResponsesReply, TK_02_BadBytesStayValidJson) {
  Parsed parsed = request();
  for (const auto& event :
       stream(parsed.format(), ScriptedReply().says(Kind::content, "\xff\xc3").ends(Finish::length))) {
    EXPECT_TRUE(OrderedJson::accept(event.data));
  }
}

}  // namespace
}  // namespace lily::test
