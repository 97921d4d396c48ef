// HTTP/1.1 over a chat service: routes, access, limits, an orderly end.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/access.h"
#include "server/api.h"
#include "server/web_assets.h"

namespace lily::server {

// A path below /v1 that takes POST; it is served without the prefix too.
struct ApiRoute {
  using ParseCount = std::variant<ChatRequest, ApiError> (*)(const OrderedJson& body, const ChatService& service);
  std::string path;  // "/chat/completions"
  const Api* api;
  ParseCount parse_count = nullptr;  // where set, the path counts tokens instead of replying
};

// All the APIs there are.
std::vector<ApiRoute> all_routes();

struct HttpOptions {
  int port = 8080;       // 0: any free one
  AccessOptions access;  // with the address to listen on
  std::vector<ApiRoute> routes;
  std::span<const WebAsset> assets;  // GET / is /index.html
  std::vector<std::string> aliases;  // further names of the model
  size_t connections = 104;          // at the same time; those beyond wait
  size_t body_bytes = 32 << 20;
  std::chrono::milliseconds head_time{10'000};   // in which a request's head must come
  std::chrono::milliseconds stall_time{30'000};  // after which a client that neither sends nor reads is given up
  std::chrono::milliseconds keep_alive{3'000};   // a stream is never silent for longer
  std::chrono::milliseconds grace{10'000};       // that running replies have to end when the server does
  std::function<void(const std::string&)> log;   // one line a request, without what it says; from several threads
};

class HttpServer {
 public:
  // Listens from now on; the service outlives it.
  static Result<std::unique_ptr<HttpServer>> create(ChatService& service, HttpOptions options);
  ~HttpServer();

  int port() const;
  // Serves until `stop`, then lets running replies end for a while. The error is that of the listening socket.
  Result<void> serve(const std::atomic<bool>& stop);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lily::server
