// The HTTP server over a fake chat service, on a free port.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/http_server.h"
#include "support/fake_chat_service.h"
#include "support/http_client.h"

namespace lily::test {

class RunningServer {
 public:
  static server::HttpOptions options() {
    server::HttpOptions options;
    options.port = 0;
    options.routes = {{"/chat/completions", &server::chat_completions_api()},
                      {"/completions", &server::completions_api()}};
    options.aliases = {"gpt-4o"};
    options.keep_alive = milliseconds(60);
    options.grace = milliseconds(100);
    return options;
  }

  explicit RunningServer(server::HttpOptions options = RunningServer::options()) {
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    auto created = server::HttpServer::create(service, std::move(options));
    if (!created) {
      ADD_FAILURE() << created.error().message();
      return;
    }
    server_ = std::move(*created);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->serve(stop_).ok()); });
  }
  ~RunningServer() { stop(); }

  void ask_to_stop() { stop_ = true; }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  int port() const { return server_->port(); }
  Socket connect() const { return Socket(port()); }
  HttpAnswer send(const std::string& request) const { return ask(port(), request); }
  HttpAnswer get(const std::string& path) const { return send(get_text(path)); }
  HttpAnswer post(const std::string& path, const std::string& body) const { return send(post_text(path, body)); }
  HttpAnswer chat(const std::string& more = "") const {
    return post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"hi"}])" + more + "}");
  }
  HttpAnswer stream(const std::string& more = "") const { return chat(R"(,"stream":true)" + more); }

  std::string log() const {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const std::string& line : log_) text += line + "\n";
    return text;
  }

  FakeChatService service;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> log_;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<server::HttpServer> server_;
  std::thread thread_;
};

// Whether it becomes true within a time that only a broken server needs.
template <class Condition>
bool eventually(Condition condition, milliseconds limit = milliseconds(3000)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

}  // namespace lily::test
