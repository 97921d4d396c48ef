// What clients of the two completion APIs get, streamed and not, over real sockets.
#include <gtest/gtest.h>

#include <set>

#include "support/running_server.h"

namespace lily::server {
namespace {

using test::HttpAnswer;
using test::RunningServer;
using test::Script;

// The events of a chat stream, put together again as a client does it.
struct Collected {
  std::string content, reasoning, finish;
  bool content_key = false, reasoning_key = false;
  struct Call {
    std::string id, name, arguments;
    int names = 0;
  };
  std::vector<Call> calls;
  std::vector<OrderedJson> logprobs;
  OrderedJson usage, timings;
  bool done = false;
};

void collect_calls(const OrderedJson& deltas, Collected& all) {
  for (const OrderedJson& delta : deltas) {
    const auto index = delta.at("index").get<size_t>();
    if (index >= all.calls.size()) all.calls.resize(index + 1);
    Collected::Call& call = all.calls[index];
    if (delta.contains("id")) {
      EXPECT_EQ(delta["type"], "function");
      call.id += delta["id"].get<std::string>();
      call.name += delta["function"]["name"].get<std::string>();
      ++call.names;
    }
    call.arguments += delta.at("function").at("arguments").get<std::string>();
  }
}

std::map<int, Collected> collect(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("content-type"), "text/event-stream");
  EXPECT_TRUE(answer.complete);
  std::map<int, Collected> choices;
  bool done = false;
  for (const std::string& event : answer.events()) {
    if (event.starts_with(":")) continue;
    EXPECT_FALSE(done) << event;
    done |= event == "[DONE]";
    if (done) continue;
    const OrderedJson chunk = OrderedJson::parse(event);
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    if (chunk.contains("usage") && !chunk["usage"].is_null()) choices[0].usage = chunk["usage"];
    if (chunk.contains("timings")) choices[0].timings = chunk["timings"];
    for (const OrderedJson& choice : chunk["choices"]) {
      Collected& all = choices[choice["index"]];
      const OrderedJson& delta = choice["delta"];
      if (delta.contains("content") && !delta.contains("role")) {
        all.content_key = true;
        all.content += delta["content"].get<std::string>();
      }
      if (delta.contains("reasoning")) {
        all.reasoning_key = true;
        EXPECT_EQ(delta["reasoning"], delta["reasoning_content"]);
        all.reasoning += delta["reasoning"].get<std::string>();
      }
      if (delta.contains("tool_calls")) collect_calls(delta["tool_calls"], all);
      if (!choice["logprobs"].is_null()) {
        for (const OrderedJson& entry : choice["logprobs"]["content"]) all.logprobs.push_back(entry);
      }
      if (!choice["finish_reason"].is_null()) all.finish += choice["finish_reason"].get<std::string>();
    }
  }
  EXPECT_TRUE(done);
  return choices;
}

Collected first(const HttpAnswer& answer) { return collect(answer)[0]; }

OrderedJson message(const HttpAnswer& answer) {
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.json()["choices"][0]["message"];
}

TEST(ChatReply, ADocumentHasAllOfOpenAIsFields) {
  RunningServer server;
  server.service.play(Script().say("Hel").say("lo").end());
  const OrderedJson document = server.chat().json();
  EXPECT_TRUE(document["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(document["object"], "chat.completion");
  EXPECT_TRUE(document["created"].is_number_integer());
  EXPECT_EQ(document["model"], "fake");
  EXPECT_TRUE(document["system_fingerprint"].is_string());
  EXPECT_EQ(
      document["choices"].dump(),
      R"([{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},"logprobs":null,"finish_reason":"stop"}])");
  EXPECT_EQ(
      document["usage"].dump(),
      R"({"prompt_tokens":100,"completion_tokens":2,"total_tokens":102,"prompt_tokens_details":{"cached_tokens":64},)"
      R"("completion_tokens_details":{"reasoning_tokens":0}})");
  EXPECT_EQ(document["timings"]["prompt_per_second"], 72.0);
  EXPECT_EQ(document["timings"]["predicted_per_second"], 1.0);
}

TEST(ChatReply, TH_05_ReasoningHasBothKeysAndItsCount) {
  RunningServer server;
  server.service.play(Script().think("hm").think("m").say("Paris").end());
  const HttpAnswer answer = server.chat();
  EXPECT_EQ(message(answer)["reasoning_content"], "hmm");
  EXPECT_EQ(message(answer)["reasoning"], "hmm");
  EXPECT_EQ(message(answer)["content"], "Paris");
  EXPECT_EQ(answer.json()["usage"]["completion_tokens_details"]["reasoning_tokens"], 2);
  const Collected stream = first(server.stream());
  EXPECT_EQ(stream.reasoning, "hmm");
  EXPECT_EQ(stream.content, "Paris");
  EXPECT_EQ(stream.finish, "stop");
}

TEST(ChatReply, TH_01_AReplyCutInThoughtIsReasoningOnly) {
  RunningServer server;
  server.service.play(Script().think("a").think("b").end(Finish::length));
  const HttpAnswer answer = server.chat();
  EXPECT_TRUE(message(answer)["content"].is_null());
  EXPECT_EQ(message(answer)["reasoning_content"], "ab");
  EXPECT_EQ(answer.json()["choices"][0]["finish_reason"], "length");
  const Collected stream = first(server.stream());
  EXPECT_EQ(stream.reasoning, "ab");
  EXPECT_FALSE(stream.content_key);
  EXPECT_EQ(stream.finish, "length");
}

TEST(ChatReply, TH_02_WithoutThoughtThereIsNoReasoningKey) {
  RunningServer server;
  server.service.play(Script().say("Paris").end());
  EXPECT_FALSE(message(server.chat()).contains("reasoning"));
  EXPECT_FALSE(message(server.chat()).contains("reasoning_content"));
  EXPECT_FALSE(first(server.stream()).reasoning_key);
}

TEST(ChatReply, TC_20_CallsHaveTheirOwnIndexAndId) {
  RunningServer server;
  server.service.play(Script().call(0, "f", {"{\"a\":", "1", "}"}).call(1, "f", {"{\"a\":2}"}).end());
  const OrderedJson calls = message(server.chat())["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  EXPECT_TRUE(calls[0]["id"].get<std::string>().starts_with("call_"));
  EXPECT_EQ(calls[0]["function"].dump(), R"({"name":"f","arguments":"{\"a\":1}"})");
  const Collected stream = first(server.stream());
  ASSERT_EQ(stream.calls.size(), 2u);
  for (const Collected::Call& call : stream.calls) EXPECT_EQ(call.names, 1);
  EXPECT_NE(stream.calls[0].id, stream.calls[1].id);
  EXPECT_EQ(stream.calls[0].arguments, R"({"a":1})");
  EXPECT_EQ(stream.calls[1].arguments, R"({"a":2})");
  EXPECT_EQ(stream.finish, "tool_calls");
}

TEST(ChatReply, TC_23_ACallAloneHasNoContent) {
  RunningServer server;
  server.service.play(Script().call(0, "f", {"{}"}).end());
  const HttpAnswer answer = server.chat();
  EXPECT_TRUE(message(answer)["content"].is_null());
  EXPECT_EQ(answer.json()["choices"][0]["finish_reason"], "tool_calls");
  server.service.play(Script().think("r").say("I will look.").call(0, "f", {"{}"}).end());
  const OrderedJson both = message(server.chat());
  EXPECT_EQ(both["content"], "I will look.");
  EXPECT_EQ(both["tool_calls"].size(), 1u);
  server.service.play(Script().call(0, "f", {"{\"a\":"}).end(Finish::length));
  EXPECT_EQ(server.chat().json()["choices"][0]["finish_reason"], "length");
}

TEST(ChatReply, TC_19_ArgumentsComeAsTheyAreWritten) {
  RunningServer server;
  server.service.play(Script().call(0, "write", {"{\"text\":\"", "a", "b"}));  // and then nothing, for ever
  const test::Socket socket = server.connect();
  socket.send(test::post_text("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"stream":true})"));
  const std::string text = socket.receive_until("\"arguments\":\"b\"");
  EXPECT_LT(text.find("\"name\":\"write\""), text.find("\"arguments\":\"a\""));
}

TEST(ChatReply, FinishReasons) {
  RunningServer server;
  const std::pair<Finish, const char*> reasons[] = {{Finish::end_token, "stop"},
                                                    {Finish::stop_string, "stop"},
                                                    {Finish::length, "length"},
                                                    {Finish::context_full, "length"}};
  for (const auto& [finish, reason] : reasons) {
    server.service.play(Script().say("a").end(finish));
    EXPECT_EQ(server.chat().json()["choices"][0]["finish_reason"], reason);
    EXPECT_EQ(first(server.stream()).finish, reason);
  }
}

TEST(ChatReply, US_01_UsageInTheStreamWhereAskedFor) {
  RunningServer server;
  server.service.play(Script().think("a").say("b").end());
  for (const char* options : {"{}", "null", R"({"include_usage":false})", R"({"include_usage":null})"}) {
    EXPECT_TRUE(first(server.stream(std::string(R"(,"stream_options":)") + options)).usage.is_null()) << options;
  }
  const HttpAnswer answer = server.stream(R"(,"stream_options":{"include_usage":true})");
  const Collected stream = first(answer);
  EXPECT_EQ(stream.usage, server.chat().json()["usage"]);
  EXPECT_EQ(stream.usage["prompt_tokens_details"]["cached_tokens"], 64);
  EXPECT_FALSE(stream.timings.is_null());
  const std::vector<std::string> events = answer.events();
  const OrderedJson last = OrderedJson::parse(events[events.size() - 2]);
  EXPECT_EQ(last["choices"].dump(), "[]");
}

TEST(ChatReply, LP_02_LogprobsCoverEveryTokenInBothModes) {
  RunningServer server;
  server.service.play(Script().think("r").say("a").silent("\xc3").say("\xc3\xa9").silent("z").end());
  const std::string more = R"(,"logprobs":true,"top_logprobs":2)";
  const HttpAnswer answer = server.chat(more);
  const OrderedJson all = answer.json()["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all.size(), answer.json()["usage"]["completion_tokens"]);
  EXPECT_EQ(all[0]["token"], "r");
  EXPECT_EQ(all[0]["logprob"], -0.25);
  EXPECT_EQ(all[0]["bytes"].dump(), "[114]");
  EXPECT_EQ(all[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(all[2]["token"], "\xef\xbf\xbd");
  EXPECT_EQ(all[2]["bytes"].dump(), "[195]");
  std::vector<std::string> bytes, streamed;
  for (const OrderedJson& entry : all) bytes.push_back(entry["bytes"].dump());
  for (const OrderedJson& entry : first(server.stream(more)).logprobs) streamed.push_back(entry["bytes"].dump());
  EXPECT_EQ(streamed, bytes);
  EXPECT_TRUE(server.chat().json()["choices"][0]["logprobs"].is_null());
}

TEST(ChatReply, TK_02_EveryEventIsJsonInUtf8) {
  RunningServer server;
  server.service.play(Script()
                          .think("\xf0\x9f\x98\x80")
                          .say("\"\\\n\x01\xe2\x82\xac")
                          .say("\xff")
                          .call(0, "f", {"{\"a\":\"\xc3\xa9\"}"})
                          .end());
  for (const std::string& event : server.stream(R"(,"logprobs":true)").events()) {
    EXPECT_TRUE(event == "[DONE]" || OrderedJson::accept(event)) << event;
    EXPECT_EQ(event.find('\n'), std::string::npos);
  }
  EXPECT_EQ(message(server.chat())["content"], "\"\\\n\x01\xe2\x82\xac\xef\xbf\xbd");
}

TEST(ChatReply, SeveralChoicesHaveSeveralSeeds) {
  RunningServer server;
  const std::vector<Script> scripts = {Script().say("a").wait(std::chrono::milliseconds(20)).say("b").end(),
                                       Script().say("c").say("d").end(Finish::length), Script().think("e").end()};
  server.service.play(scripts);
  const OrderedJson document = server.chat(R"(,"n":3,"seed":7)").json();
  ASSERT_EQ(document["choices"].size(), 3u);
  EXPECT_EQ(document["choices"][0]["message"]["content"], "ab");
  EXPECT_EQ(document["choices"][1]["message"]["content"], "cd");
  EXPECT_EQ(document["choices"][1]["finish_reason"], "length");
  EXPECT_EQ(document["choices"][2]["message"]["reasoning"], "e");
  EXPECT_EQ(document["usage"]["prompt_tokens"], 100);
  EXPECT_EQ(document["usage"]["completion_tokens"], 5);
  std::vector<uint64_t> seeds;
  for (const ChatRequest& request : server.service.chats()) seeds.push_back(request.reply.sampling.seed);
  EXPECT_EQ(seeds, (std::vector<uint64_t>{7, 8, 9}));
  server.service.play(scripts);
  std::map<int, Collected> choices = collect(server.stream(R"(,"n":3)"));
  EXPECT_EQ(choices[0].content, "ab");
  EXPECT_EQ(choices[1].content, "cd");
  EXPECT_EQ(choices[2].finish, "stop");
}

TEST(ChatReply, AFailureOfOneChoiceEndsThemAll) {
  RunningServer server;
  server.service.play({Script().say("a"), Script().say("b").error({.what = "broken"})});
  EXPECT_EQ(server.chat(R"(,"n":2)").status, 500);
  EXPECT_TRUE(test::eventually([&] { return server.service.counts().running == 0; }));
}

TEST(ChatReply, AFailureInTheStreamIsAnErrorEvent) {
  RunningServer server;
  server.service.play(Script().say("a").error({.where = "sampler", .what = "logits are not finite"}));
  const HttpAnswer answer = server.stream();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.complete);
  const std::vector<std::string> events = answer.events();
  const OrderedJson last = OrderedJson::parse(events.back());
  EXPECT_NE(last["error"]["message"].get<std::string>().find("logits are not finite"), std::string::npos);
  EXPECT_EQ(last["error"]["type"], "server_error");
}

TEST(CompletionReply, DocumentAndStreamAgree) {
  RunningServer server;
  server.service.play(Script().say("a").silent("\xc3").say("\xc3\xa9").end(Finish::length));
  const HttpAnswer answer = server.post("/v1/completions", R"({"prompt":"x","logprobs":2})");
  const OrderedJson document = answer.json();
  EXPECT_EQ(document["object"], "text_completion");
  EXPECT_EQ(document["choices"][0]["text"], "a\xc3\xa9");
  EXPECT_EQ(document["choices"][0]["finish_reason"], "length");
  const OrderedJson logprobs = document["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"].size(), 3u);
  EXPECT_EQ(logprobs["token_logprobs"].dump(), "[-0.25,-0.25,-0.25]");
  EXPECT_EQ(logprobs["text_offset"].dump(), "[0,1,1]");
  EXPECT_EQ(logprobs["top_logprobs"][0]["a"], -0.25);
  const HttpAnswer stream = server.post(
      "/v1/completions", R"({"prompt":"x","logprobs":2,"stream":true,"stream_options":{"include_usage":true}})");
  std::string text, finish;
  size_t tokens = 0;
  OrderedJson usage;
  for (const std::string& event : stream.events()) {
    if (event.starts_with(":") || event == "[DONE]") continue;
    const OrderedJson chunk = OrderedJson::parse(event);
    if (!chunk["usage"].is_null()) usage = chunk["usage"];
    for (const OrderedJson& choice : chunk["choices"]) {
      text += choice["text"].get<std::string>();
      if (!choice["finish_reason"].is_null()) finish += choice["finish_reason"].get<std::string>();
      if (!choice["logprobs"].is_null()) tokens += choice["logprobs"]["tokens"].size();
    }
  }
  EXPECT_EQ(text, "a\xc3\xa9");
  EXPECT_EQ(finish, "length");
  EXPECT_EQ(tokens, 3u);
  EXPECT_EQ(usage, document["usage"]);
  EXPECT_EQ(stream.events().back(), "[DONE]");
}

}  // namespace
}  // namespace lily::server
