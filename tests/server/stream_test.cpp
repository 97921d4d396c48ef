// Time: silence, clients that go, clients that do not read, many at once, the end of the server.
#include <gtest/gtest.h>

#include <chrono>
#include <list>

#include "support/running_server.h"

namespace lily::server {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::HttpAnswer;
using test::RunningServer;
using test::Script;
using test::Socket;

using Clock = std::chrono::steady_clock;

const std::string chat = R"({"messages":[{"role":"user","content":"hi"}]})";
const std::string streamed = R"({"messages":[{"role":"user","content":"hi"}],"stream":true})";

std::string post(const std::string& body) { return test::post_text("/v1/chat/completions", body); }

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(Stream, CN_10_TheFirstByteComesAtOnce) {
  RunningServer server;
  server.service.play(Script().progress(0, 1000));  // prefill that never ends
  const struct {
    const char *path, *body;
  } cases[] = {{"/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}],"stream":true})"},
               {"/v1/completions", R"({"prompt":"hi","stream":true})"}};
  for (const auto& [path, body] : cases) {
    const Socket socket = server.connect();
    const auto start = Clock::now();
    socket.send(test::post_text(path, body));
    const std::string text = socket.receive_until("\n\n");
    EXPECT_NE(text.find("text/event-stream"), std::string::npos) << text;
    EXPECT_NE(text.find("\n\n"), std::string::npos) << text;
    EXPECT_LT(Clock::now() - start, 1s);
  }
}

// Its client knows nothing of chunks and reads until the connection ends.
TEST(Stream, AnHttp10ClientGetsNoChunks) {
  RunningServer server;
  const Socket socket = server.connect();
  std::string request = post(streamed);
  request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
  socket.send(request);
  std::string text;
  for (std::string more; !(more = socket.receive()).empty();) text += more;
  const size_t body = text.find("\r\n\r\n");
  ASSERT_NE(body, std::string::npos);
  EXPECT_EQ(text.find("chunked"), std::string::npos) << text;
  EXPECT_EQ(text.find("Content-Length"), std::string::npos) << text;
  EXPECT_EQ(text.find('\r', body + 4), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("data: [DONE]\n\n")) << text;
}

TEST(Stream, CN_09_NoSilenceInPrefillBetweenTokensAndInCalls) {
  RunningServer server;
  server.service.play(Script()
                          .wait(200ms)
                          .progress(1, 2)
                          .wait(200ms)
                          .think("a")
                          .wait(200ms)
                          .call(0, "f", {"{"})
                          .wait(200ms)
                          .say("b")
                          .end());
  const Socket socket = server.connect();
  socket.send(post(streamed));
  std::string all;
  auto last = Clock::now();
  auto longest = 0ms;
  for (std::string more; !(more = socket.receive()).empty(); all += more) {
    longest = std::max(longest, std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - last));
    last = Clock::now();
  }
  EXPECT_LT(longest, 170ms);  // the interval of this server is 60 ms
  EXPECT_GE(count_of(all, ": still working"), 8u) << all;
  EXPECT_NE(all.find("[DONE]"), std::string::npos);
}

TEST(Stream, CN_09_SignsOfLifeForEveryChoiceThatIsSilent) {
  RunningServer server;
  server.service.play({Script().wait(250ms).say("a").end(), Script().end()});
  const HttpAnswer answer = server.stream(R"(,"n":2)");
  EXPECT_GE(count_of(answer.body, ": still working"), 2u) << answer.body;
}

TEST(Stream, AStreamThatFlowsHasNoComments) {
  RunningServer server;
  Script script;
  for (int i = 0; i < 20; ++i) script.wait(10ms).say("a");
  server.service.play(script.end());
  EXPECT_EQ(count_of(server.stream().body, "\n: "), 0u);
}

TEST(Stream, TokensThatWaitAreSentByOneWrite) {
  RunningServer server;
  Script script;
  for (int i = 0; i < 200; ++i) script.say("a");
  server.service.play(script.end());
  const Socket socket = server.connect();
  socket.send(post(streamed));
  const std::string text = socket.receive_all();
  EXPECT_EQ(count_of(text, "\"content\":\"a\""), 200u);
  EXPECT_LT(count_of(text, "\r\ndata: "), 20u);  // each write is a chunk
}

// The ways to go: closed, only the sending side, reset with unread bytes.
enum class Leave { close, half_close };

void expect_freed(const std::string& body, Script script, const std::string& wait_for, Leave leave) {
  RunningServer server;
  server.service.play(std::move(script));
  Socket socket = server.connect();
  socket.send(post(body));
  if (!wait_for.empty()) socket.receive_until(wait_for);
  ASSERT_TRUE(eventually([&] { return server.service.counts().running == 1; }));
  const auto start = Clock::now();
  leave == Leave::close ? socket.close() : socket.half_close();
  EXPECT_TRUE(eventually([&] { return server.service.counts().running == 0; }));
  EXPECT_LT(Clock::now() - start, 250ms);
  EXPECT_EQ(server.service.counts().cancelled, 1);
  server.stop();
  EXPECT_NE(server.log().find(" 499 "), std::string::npos) << server.log();
}

TEST(Stream, CN_01_JobsOfClientsThatHaveGoneAreCancelled) {
  Script flowing = Script();
  for (int i = 0; i < 10'000; ++i) flowing.wait(1ms).say("a");
  for (const Leave leave : {Leave::close, Leave::half_close}) {
    expect_freed(streamed, flowing, "\"content\":\"a\"", leave);
    expect_freed(chat, flowing, "", leave);
    expect_freed(streamed, Script(), "role", leave);  // silent
    expect_freed(chat, Script().progress(1, 100), "", leave);
  }
}

TEST(Stream, CN_03_OneThatGoesDoesNotHurtAnother) {
  RunningServer server;
  Script script;
  for (int i = 0; i < 20; ++i) script.wait(10ms).say("a");
  server.service.play({script.end(), Script(), Script().say("c").end()});
  const Socket first = server.connect();
  first.send(post(streamed));
  first.receive_until("role");
  {
    const Socket second = server.connect();
    second.send(post(streamed));
    second.receive_until("role");
  }
  const std::string rest = first.receive_all();
  EXPECT_NE(rest.find("[DONE]"), std::string::npos);
  EXPECT_EQ(count_of(rest, "\"content\":\"a\""), 20u);
  EXPECT_TRUE(eventually([&] { return server.service.counts().running == 0; }));
}

TEST(Stream, AClientThatDoesNotReadIsGivenUpAndHurtsNobody) {
  HttpOptions options = RunningServer::options();
  options.stall_time = 200ms;
  RunningServer server(options);
  Script flood;
  for (int i = 0; i < 3000; ++i) flood.say(std::string(10'000, 'x'));
  server.service.play({flood, Script().say("b").end()});
  const Socket slow(server.port(), 4096);
  slow.send(post(streamed));
  ASSERT_TRUE(eventually([&] { return server.service.counts().running == 1; }));
  const auto start = Clock::now();
  EXPECT_EQ(server.chat().status, 200);
  EXPECT_LT(Clock::now() - start, 1s);
  EXPECT_TRUE(eventually([&] { return server.service.counts().running == 0; }));
  EXPECT_EQ(server.service.counts().cancelled, 1);
}

TEST(Stream, ManyAtOnceAndHealthBesides) {
  RunningServer server;
  server.service.play(Script().say("a").wait(400ms).say("b").end());
  std::list<Socket> sockets;
  for (int i = 0; i < 64; ++i) {
    sockets.push_back(server.connect());
    sockets.back().send(post(streamed));
  }
  for (const Socket& socket : sockets)
    EXPECT_NE(socket.receive_until("\"content\":\"a\"").find("a"), std::string::npos);
  EXPECT_EQ(server.service.counts().running, 64);
  const auto start = Clock::now();
  EXPECT_EQ(server.get("/health").json()["running"], 64);
  EXPECT_LT(Clock::now() - start, 300ms);
  for (const Socket& socket : sockets) EXPECT_NE(socket.receive_all().find("[DONE]"), std::string::npos);
}

TEST(Stream, ConnectionsBeyondTheLimitWaitForTheirTurn) {
  HttpOptions options = RunningServer::options();
  options.connections = 2;
  RunningServer server(options);
  server.service.play(Script().say("a").wait(50ms).end());
  std::list<Socket> sockets;
  for (int i = 0; i < 8; ++i) {
    sockets.push_back(server.connect());
    sockets.back().send(post(chat));
  }
  for (const Socket& socket : sockets) EXPECT_EQ(test::parse_answer(socket.receive_all()).status, 200);
}

TEST(Stream, TheEndOfTheServerLetsRepliesEnd) {
  HttpOptions options = RunningServer::options();
  options.grace = 5s;
  RunningServer server(options);
  server.service.play(Script().say("a").wait(200ms).say("b").end());
  const Socket socket = server.connect();
  socket.send(post(streamed));
  socket.receive_until("\"content\":\"a\"");
  server.ask_to_stop();
  const auto start = Clock::now();
  EXPECT_TRUE(eventually([&] { return !Socket(server.port()).connected(); }));
  EXPECT_NE(socket.receive_all().find("[DONE]"), std::string::npos);
  server.stop();
  EXPECT_LT(Clock::now() - start, 2s);
  EXPECT_EQ(server.service.counts().cancelled, 0);
}

TEST(Stream, TheEndOfTheServerCancelsWhatTakesTooLong) {
  RunningServer server;  // its grace is 100 ms
  server.service.play(Script().say("a"));
  const Socket socket = server.connect(), other = server.connect();
  socket.send(post(streamed));
  other.send(post(chat));
  socket.receive_until("\"content\":\"a\"");
  ASSERT_TRUE(eventually([&] { return server.service.counts().running == 2; }));
  const auto start = Clock::now();
  server.stop();
  EXPECT_LT(Clock::now() - start, 1s);
  EXPECT_NE(socket.receive_all().find("shutting_down"), std::string::npos);
  EXPECT_EQ(test::parse_answer(other.receive_all()).status, 503);
  EXPECT_EQ(server.service.counts().running, 0);
}

TEST(Stream, AnIdleConnectionDoesNotHoldTheEndUp) {
  RunningServer server;
  const Socket idle = server.connect();
  EXPECT_EQ(server.get("/health").status, 200);
  const auto start = Clock::now();
  server.stop();
  EXPECT_LT(Clock::now() - start, 1s);
}

}  // namespace
}  // namespace lily::server
