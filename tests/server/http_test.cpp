// Routes, pages, access and requests that are none, over real sockets.
#include <gtest/gtest.h>

#include "support/running_server.h"

namespace lily::server {
namespace {

using test::get_text;
using test::HttpAnswer;
using test::post_text;
using test::RunningServer;

const std::string chat_path = "/v1/chat/completions";
const std::string hello = R"({"messages":[{"role":"user","content":"hi"}]})";

TEST(Http, HealthAndModelsSayWhatThereIs) {
  const RunningServer server;
  const HttpAnswer health = server.get("/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.json()["status"], "ok");
  EXPECT_EQ(health.json()["model"], "fake");
  const OrderedJson models = server.get("/v1/models").json();
  EXPECT_EQ(models["object"], "list");
  ASSERT_EQ(models["data"].size(), 2u);
  EXPECT_EQ(models["data"][0]["id"], "fake");
  EXPECT_EQ(models["data"][0]["object"], "model");
  EXPECT_TRUE(models["data"][0]["created"].is_number_integer());
  EXPECT_TRUE(models["data"][0]["owned_by"].is_string());
  EXPECT_EQ(models["data"][1]["id"], "gpt-4o");
  EXPECT_EQ(server.get("/models").json(), models);
  EXPECT_EQ(server.get("/v1/models/fake").json(), models["data"][0]);
  EXPECT_EQ(server.get("/v1/models/gpt-4o").status, 200);
  EXPECT_EQ(server.get("/v1/models/other").status, 404);
}

TEST(Http, CX_02_ModelsTellTheContextOfOneRequest) {
  const RunningServer server;
  const OrderedJson model = server.get("/v1/models").json()["data"][0];
  for (const char* name : {"context_length", "max_model_len", "context_window"}) EXPECT_EQ(model[name], 4096) << name;
  EXPECT_EQ(model["meta"]["n_ctx"], 4096);
}

TEST(Http, MetricsAreInPrometheusForm) {
  const RunningServer server;
  server.chat();
  server.get("/nothing");
  const HttpAnswer metrics = server.get("/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_TRUE(metrics.header("content-type").starts_with("text/plain"));
  EXPECT_NE(metrics.body.find("# TYPE lily_prompt_tokens_total counter\nlily_prompt_tokens_total 1234\n"),
            std::string::npos);
  EXPECT_NE(metrics.body.find("lily_http_responses_total{code=\"404\"} 1\n"), std::string::npos);
  EXPECT_EQ(metrics.body.back(), '\n');
}

TEST(Http, UnknownPathsAndMethodsAreErrorsInJson) {
  const RunningServer server;
  const struct {
    const char *method, *path;
    int status;
  } cases[] = {
      {"GET", "/nothing", 404},        {"POST", "/v1/nothing", 404},          {"GET", "/v1/chat/completions", 405},
      {"PUT", "/v1/completions", 405}, {"DELETE", "/v1/models/fake", 405},    {"POST", "/health", 405},
      {"POST", "/v1/models", 405},     {"PATCH", "/v1/chat/completions", 405}};
  for (const auto& [method, path, status] : cases) {
    const HttpAnswer answer =
        server.send(std::string(method) + " " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    EXPECT_EQ(answer.status, status) << method << " " << path;
    EXPECT_TRUE(answer.json()["error"]["message"].is_string()) << answer.body;
    EXPECT_EQ(answer.header("allow").empty(), status != 405) << method << " " << path;
  }
}

TEST(Http, ThePrefixOfPathsMayBeLeftOut) {
  const RunningServer server;
  EXPECT_EQ(server.post("/chat/completions", hello).status, 200);
  EXPECT_EQ(server.post("/completions", R"({"prompt":"a"})").status, 200);
}

TEST(Http, ServesThePageWithItsTypesAndTags) {
  const WebAsset assets[] = {{"/index.html", "<!doctype html>", "\"a1\""}, {"/app.js", "1;", "\"b2\""}};
  HttpOptions options = RunningServer::options();
  options.assets = assets;
  options.access.key = "secret";
  const RunningServer server(options);
  const HttpAnswer page = server.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.body, "<!doctype html>");
  EXPECT_EQ(page.header("content-type"), "text/html; charset=utf-8");
  EXPECT_NE(page.header("content-security-policy").find("default-src 'self'"), std::string::npos);
  EXPECT_EQ(page.header("cache-control"), "no-cache");
  EXPECT_EQ(server.get("/app.js").header("content-type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(server.send(get_text("/", "Host: localhost\r\nIf-None-Match: \"a1\"\r\n")).status, 304);
  EXPECT_EQ(server.send(get_text("/", "Host: localhost\r\nIf-None-Match: \"b2\"\r\n")).status, 200);
  EXPECT_EQ(server.get("/../secret").status, 401);
  const HttpAnswer head = server.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
}

TEST(Http, TheBuiltInPageIsWhole) {
  for (const WebAsset& asset : web_assets()) {
    EXPECT_TRUE(asset.path.starts_with("/"));
    EXPECT_FALSE(asset.bytes.empty()) << asset.path;
  }
}

TEST(Http, SC_02_OnlyOwnNamesAreServed) {
  HttpOptions options = RunningServer::options();
  options.access.hosts = {"lily.lan"};
  const RunningServer server(options);
  for (const char* host : {"localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1:1", "[::1]:8080", "lily.lan:80"}) {
    EXPECT_EQ(server.send(get_text("/health", std::string("Host: ") + host + "\r\n")).status, 200) << host;
  }
  for (const char* host :
       {"evil.example:8080", "", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.2"}) {
    EXPECT_EQ(server.send(get_text("/health", std::string("Host: ") + host + "\r\n")).status, 403) << host;
  }
  EXPECT_EQ(server.send(get_text("/health", "")).status, 403);
  EXPECT_EQ(server.send(get_text("/health", "Host: localhost\r\nHost: evil.example\r\n")).status, 403);
  EXPECT_EQ(server.send(post_text(chat_path, hello, "Host: evil.example\r\n")).status, 403);
  EXPECT_TRUE(server.service.chats().empty());
}

TEST(Http, PagesOfOtherOriginsAreRefused) {
  const RunningServer server;
  const std::string host = "Host: localhost:8080\r\n";
  const HttpAnswer plain = server.send(post_text(chat_path, hello, host));
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.headers.count("access-control-allow-origin"), 0u);
  EXPECT_EQ(server.send(post_text(chat_path, hello, host + "Origin: http://localhost:8080\r\n")).status, 200);
  for (const char* origin :
       {"https://evil.example", "null", "http://localhost:3000", "http://localhost:8080.evil.example", "x"}) {
    const HttpAnswer answer = server.send(post_text(chat_path, hello, host + "Origin: " + origin + "\r\n"));
    EXPECT_EQ(answer.status, 403) << origin;
    EXPECT_EQ(answer.headers.count("access-control-allow-origin"), 0u);
    EXPECT_EQ(answer.json()["error"]["code"], "origin_not_allowed");
  }
  EXPECT_EQ(server.service.chats().size(), 2u);
}

TEST(Http, NamedOriginsMayAskFirst) {
  HttpOptions options = RunningServer::options();
  options.access.origins = {"https://app.example"};
  options.access.key = "secret";
  const RunningServer server(options);
  const std::string preflight =
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: authorization,content-type\r\n";
  const HttpAnswer answer = server.send(preflight + "Origin: https://app.example\r\n\r\n");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.header("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(answer.header("access-control-allow-headers"), "authorization,content-type");
  EXPECT_NE(answer.header("access-control-allow-methods").find("POST"), std::string::npos);
  EXPECT_EQ(server.send(preflight + "Origin: https://other.example\r\n\r\n").status, 403);
  const std::string headers = "Host: localhost\r\nOrigin: https://app.example\r\nAuthorization: Bearer secret\r\n";
  const HttpAnswer chat = server.send(post_text(chat_path, hello, headers));
  EXPECT_EQ(chat.status, 200);
  EXPECT_EQ(chat.header("access-control-allow-origin"), "https://app.example");
}

TEST(Http, SC_05_TheKeyIsAskedForAndNeverShown) {
  HttpOptions options = RunningServer::options();
  options.access.key = "s3cret-key";
  const RunningServer server(options);
  const std::string host = "Host: localhost\r\n";
  EXPECT_EQ(server.get("/health").status, 200);
  for (const char* path : {"/metrics", "/v1/models", "/nothing"}) EXPECT_EQ(server.get(path).status, 401) << path;
  const char* wrong[] = {"",
                         "Authorization: Bearer \r\n",
                         "Authorization: Bearer s3cret-kez\r\n",
                         "Authorization: s3cret-key\r\n",
                         "Authorization: Basic s3cret-key\r\n",
                         "x-api-key: s3cret\r\n",
                         "x-api-key: s3cret-keys3cret-key\r\n"};
  for (const char* header : wrong) {
    const HttpAnswer answer = server.send(post_text(chat_path, hello, host + header));
    EXPECT_EQ(answer.status, 401) << header;
    EXPECT_EQ(answer.json()["error"]["code"], "invalid_api_key");
  }
  EXPECT_TRUE(server.service.chats().empty());
  for (const char* header :
       {"Authorization: Bearer s3cret-key\r\n", "authorization: bearer s3cret-key\r\n", "X-Api-Key: s3cret-key\r\n"}) {
    EXPECT_EQ(server.send(post_text(chat_path, hello, host + header)).status, 200) << header;
  }
  EXPECT_EQ(server.log().find("s3cret"), std::string::npos);
}

TEST(Http, US_03_FailuresHaveTheirStatusAndShape) {
  RunningServer server;
  const auto expect = [&](const HttpAnswer& answer, int status, const char* code) {
    EXPECT_EQ(answer.status, status) << answer.body;
    const OrderedJson error = answer.json()["error"];
    EXPECT_TRUE(error["message"].is_string() && error["type"].is_string() && error.contains("param")) << answer.body;
    if (code) {
      EXPECT_EQ(error["code"], code) << answer.body;
    }
  };
  expect(server.post(chat_path, R"({"messages":[{"role":"king","content":"hi"}]})"), 400, nullptr);
  expect(server.chat(R"(,"model":"gpt-5")"), 404, "model_not_found");
  expect(server.chat(R"(,"model":7)"), 400, nullptr);
  for (const char* name : {"fake", "default", "gpt-4o", ""}) {
    EXPECT_EQ(server.chat(R"(,"model":")" + std::string(name) + "\"").status, 200) << name;
  }
  server.service.refuse({.kind = ServiceError::Kind::bad_request, .error = {.where = "messages", .what = "no good"}});
  const HttpAnswer bad = server.chat();
  expect(bad, 400, nullptr);
  EXPECT_EQ(bad.json()["error"]["param"], "messages");
  server.service.refuse({.kind = ServiceError::Kind::busy, .error = {.what = "the queue is full"}});
  for (const char* more : {"", R"(,"stream":true)"}) {
    const HttpAnswer busy = server.chat(more);
    expect(busy, 503, "server_busy");
    EXPECT_FALSE(busy.header("retry-after").empty());
  }
  server.service.refuse({.kind = ServiceError::Kind::internal, .error = {.what = "broken"}});
  expect(server.chat(), 500, nullptr);
  server.service.play(test::Script().say("a").error({.where = "sampler", .what = "logits are not finite"}));
  expect(server.chat(), 500, nullptr);
  server.service.fail_with_exception();
  expect(server.chat(), 500, nullptr);
  EXPECT_EQ(server.get("/health").status, 200);
}

std::variant<ChatRequest, ApiError> parse_one_field(const OrderedJson& body, const ChatService&) {
  if (!body.is_object() || !body.contains("messages"))
    return ApiError{.message = "messages: missing", .param = "messages"};
  ChatRequest request;
  request.messages.resize(body["messages"].size());
  return request;
}

TEST(Http, CountsTokensWithoutAReply) {
  HttpOptions options = RunningServer::options();
  options.routes.push_back({"/messages/count_tokens", &chat_completions_api(), parse_one_field});
  const RunningServer server(options);
  const HttpAnswer counted = server.post("/v1/messages/count_tokens", hello);
  EXPECT_EQ(counted.status, 200);
  EXPECT_EQ(counted.body, R"({"input_tokens":10})");
  EXPECT_EQ(server.post("/v1/messages/count_tokens", "{}").status, 400);
  EXPECT_EQ(server.post("/v1/messages/count_tokens", R"({"model":"x","messages":[]})").status, 404);
  EXPECT_TRUE(server.service.chats().empty());
}

TEST(Http, CX_03_OverflowIsToldInTheWordsAgentsLookFor) {
  RunningServer server;
  server.service.refuse(
      {.kind = ServiceError::Kind::context_overflow, .error = {}, .prompt_tokens = 5000, .context = 4096});
  for (const char* more : {"", R"(,"stream":true)"}) {
    const HttpAnswer answer = server.chat(more);
    EXPECT_EQ(answer.status, 400);
    const OrderedJson error = answer.json()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    const auto message = error["message"].get<std::string>();
    for (const char* part : {"context_length_exceeded", "exceeds the available context size", "5000", "4096"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

TEST(Http, BodiesThatAreNoJsonAreRefused) {
  const RunningServer server;
  const std::string deep(100'000, '['), objects = [] {
    std::string text;
    for (int i = 0; i < 50'000; ++i) text += "{\"a\":";
    return text;
  }();
  const std::string bodies[] = {"",
                                "{",
                                "null",
                                "[]",
                                "7",
                                "\"x\"",
                                "{}x",
                                deep,
                                objects,
                                std::string("{\"a\":\0}", 7),
                                "{\"messages\":\"\xff\"}",
                                "{\"messages\":\"\xc3\"}",
                                R"({"messages":"\ud800"})",
                                R"({"messages":[],"seed":1e999})",
                                "{'a':1}",
                                "\xef\xbb\xbf\xef\xbb\xbf{}"};
  for (const std::string& body : bodies) {
    for (const char* path : {"/v1/chat/completions", "/v1/completions"}) {
      const HttpAnswer answer = server.post(path, body);
      EXPECT_EQ(answer.status, 400) << body.substr(0, 40);
      EXPECT_TRUE(answer.json()["error"]["message"].is_string()) << answer.body;
    }
  }
  EXPECT_TRUE(server.service.chats().empty());
}

TEST(Http, NestedJsonHasALimit) {
  const RunningServer server;
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_EQ(server.chat(",\"metadata\":" + nested(90)).status, 200);
  for (const int depth : {110, 100'000}) {
    const HttpAnswer answer = server.chat(",\"metadata\":" + nested(depth));
    EXPECT_EQ(answer.status, 400);
    EXPECT_NE(answer.body.find("nested deeper"), std::string::npos) << answer.body;
  }
  EXPECT_EQ(server.chat(R"(,"user":"[[[[\"[[[[")").status, 200);
}

TEST(Http, ValuesOfHeadersDoNotEndAtANulByte) {
  HttpOptions options = RunningServer::options();
  options.access.key = "secret";
  const RunningServer server(options);
  const std::string nul(1, '\0');
  const auto status = [&](const std::string& host, const std::string& origin, const std::string& key) {
    return server
        .send("GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + origin + "\r\nx-api-key: " + key +
              "\r\n\r\n")
        .status;
  };
  EXPECT_EQ(status("localhost", "http://localhost", "secret"), 200);
  EXPECT_EQ(status("localhost" + nul + ".evil.example", "http://localhost", "secret"), 403);
  EXPECT_EQ(status("localhost%00.evil.example", "http://localhost", "secret"), 403);
  EXPECT_EQ(status("localhost", "http://localhost" + nul + ".evil.example", "secret"), 403);
  EXPECT_EQ(status("localhost", "http://localhost", "secret" + nul + "x"), 401);
}

TEST(Http, MalformedRequestsDoNoHarm) {
  HttpOptions options = RunningServer::options();
  options.body_bytes = 10'000;
  options.head_time = std::chrono::milliseconds(100);
  options.stall_time = std::chrono::milliseconds(100);
  const RunningServer server(options);
  const std::string host = "Host: localhost\r\n", post = "POST /v1/chat/completions HTTP/1.1\r\n" + host;
  const struct {
    std::string request;
    int status;  // 0: no answer
  } cases[] = {
      {"garbage\r\n\r\n", 400},
      {std::string(100, '\0') + "\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\n" + host + "\r\n", 400},
      {"\x16\x03\x01\x02\x01\x01\xfc\x03\x03", 0},  // TLS
      {"GET", 0},
      {"", 0},
      {"GET /" + std::string(9'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 414},
      {"GET /health HTTP/1.1\r\n" + host + "X: " + std::string(9'000, 'a') + "\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\n" + host +
           [] {
             std::string many;
             for (int i = 0; i < 20'000; ++i) many += "X" + std::to_string(i) + ": y\r\n";
             return many;
           }() +
           "\r\n",
       413},
      {post + "\r\n" + hello, 411},
      {post + "Content-Length: 99999999999999999999\r\n\r\n" + hello, 413},
      {post + "Content-Length: 10001\r\n\r\n" + hello, 413},
      {post + "Content-Length: -5\r\n\r\n" + hello, 400},
      {post + "Content-Length: x\r\n\r\n" + hello, 400},
      {post + "Content-Length: 3\r\nContent-Length: 45\r\n\r\n" + hello, 400},
      {post + "Content-Length: 5\r\n\r\n" + hello, 400},
      {post + "Content-Length: 500\r\n\r\n" + hello, 400},
      {post + "Transfer-Encoding: gzip\r\n\r\n" + hello, 501},
      {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + hello, 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff0\r\n" + hello, 400},
      {post + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415},
      {post + "Content-Type: text/plain\r\nContent-Length: 45\r\n\r\n" + hello, 415},
      {post + "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 45\r\n\r\n" + hello, 415},
  };
  for (const auto& [request, status] : cases) {
    const HttpAnswer answer = server.send(request);
    EXPECT_EQ(answer.status, status) << request.substr(0, 120);
    if (status != 0) {
      EXPECT_TRUE(answer.json()["error"]["message"].is_string()) << answer.body;
    }
  }
  EXPECT_TRUE(server.service.chats().empty());
  EXPECT_EQ(server.chat().status, 200);
}

TEST(Http, ChunkedBodiesAreReadUpToTheLimit) {
  HttpOptions options = RunningServer::options();
  options.body_bytes = 100'000;
  const RunningServer server(options);
  const std::string post =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string small, large;
  for (const char c : hello) small += std::string("1\r\n") + c + "\r\n";
  for (int i = 0; i < 3000; ++i) large += "400\r\n" + std::string(1024, ' ') + "\r\n";
  EXPECT_EQ(server.send(post + small + "0\r\n\r\n").status, 200);
  EXPECT_EQ(server.send(post + large + "0\r\n\r\n").status, 413);
}

TEST(Http, RangesAreIgnored) {
  const RunningServer server;
  const HttpAnswer answer = server.send(get_text("/health", "Host: localhost\r\nRange: bytes=0-3\r\n"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json()["status"], "ok");
}

TEST(Http, ASlowHeadIsCutOff) {
  HttpOptions options = RunningServer::options();
  options.head_time = std::chrono::milliseconds(150);
  const RunningServer server(options);
  const test::Socket socket = server.connect();
  const auto start = std::chrono::steady_clock::now();
  socket.send("GET /health HTTP/1.1\r\n");
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    socket.send("X-" + std::to_string(i) + ": y\r\n");  // never long silent, never done
  }
  EXPECT_EQ(test::parse_answer(socket.receive_all()).status, 400);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Http, TheLogHasOneLineARequestAndNoContent) {
  RunningServer server;
  server.post(chat_path, R"({"messages":[{"role":"user","content":"private words"}]})");
  server.get("/health?token=private");
  server.get("/a%0Ab");
  server.stop();
  const std::string log = server.log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
  EXPECT_NE(log.find("POST /v1/chat/completions 200"), std::string::npos) << log;
  EXPECT_NE(log.find("1 tokens, prompt 100, cached 64"), std::string::npos) << log;
  EXPECT_EQ(log.find("private"), std::string::npos) << log;
}

TEST(Http, ATakenPortIsAnError) {
  const RunningServer first;
  HttpOptions options = RunningServer::options();
  options.port = first.port();
  test::FakeChatService service;
  const auto second = HttpServer::create(service, options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().exit_code, 1);
}

}  // namespace
}  // namespace lily::server
