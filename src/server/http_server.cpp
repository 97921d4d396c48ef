#include "server/http_server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "server/connection.h"
#include "server/request_handler.h"
#include "server/task_pool.h"

namespace lily::server {
namespace {

using namespace std::chrono_literals;

constexpr int backlog = 256;

// What the thread of a connection works on: httplib does not hand it to the handlers.
thread_local Connection* current = nullptr;

class PoolOfHttplib final : public httplib::TaskQueue {
 public:
  explicit PoolOfHttplib(size_t limit) : pool_(limit) {}
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));  // void, bool in newer versions
  Enqueued enqueue(std::function<void()> task) override {
    pool_.add(std::move(task));
    return static_cast<Enqueued>(true);
  }
  void shutdown() override { pool_.finish(); }

 private:
  TaskPool pool_;
};

class ClientOfConnection final : public Client {
 public:
  ClientOfConnection(const Connection& connection, httplib::DataSink* sink) : connection_(connection), sink_(sink) {}
  bool send(std::string_view text) override { return sink_ && sink_->write(text.data(), text.size()); }
  bool gone() override { return connection_.peer_gone(); }

 private:
  const Connection& connection_;
  httplib::DataSink* sink_;  // null where nothing is streamed
};

// One port, one server: with httplib's own options a second one would share it.
void reuse_address(socket_t socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

// Signals go to the thread that waits for them, not to one whose accept() they would end.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

class HttpServer::Impl final : public httplib::Server {
 public:
  Impl(ChatService& service, HttpOptions options, Access access)
      : options_(std::move(options)), handler_(service, options_, std::move(access), closing_) {
    limits_.body_bytes = options_.body_bytes;
    limits_.head_time = options_.head_time;
    limits_.stall_time = options_.stall_time;
    new_task_queue = [this] { return new PoolOfHttplib(options_.connections); };
    set_socket_options(reuse_address);
    set_payload_max_length(options_.body_bytes);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      current->head_done();
      return handler_.answer_head(request, response) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    });
    for (const ApiRoute& route : options_.routes) {
      for (const char* prefix : {"/v1", ""}) {
        Post(prefix + route.path, [this, &route](const httplib::Request& request, httplib::Response& response) {
          handler_.answer_api(route, request, response, [connection = current](httplib::DataSink* sink) {
            return std::make_unique<ClientOfConnection>(*connection, sink);
          });
          // To such a client, the marks of chunks are a part of the text; it reads until the connection ends.
          if (request.version == "HTTP/1.0") response.is_chunked_content_provider_ = false;
        });
      }
    }
    set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
      handler_.answer_fault(request, response, current && current->too_large());
    });
    set_logger([this](const httplib::Request& request, const httplib::Response& response) {
      handler_.note_status(request, response);
    });
  }

  Result<void> bind() {
    const std::string& host = options_.access.address;
    port_ = options_.port == 0 ? bind_to_any_port(host) : bind_to_port(host, options_.port) ? options_.port : -1;
    if (port_ > 0 && ::listen(svr_sock_, backlog) == 0) return {};
    return Error{.where = fmt::format("{} port {}", host, options_.port),
                 .what = "cannot listen there",
                 .expected = "an address of this machine and a port that is free",
                 .exit_code = 1};
  }

  Result<void> serve(const std::atomic<bool>& asked_to_stop) {
    std::atomic<bool> ended = false;
    std::thread listener;
    {
      const BlockedSignals blocked;
      listener = std::thread([&] {
        listen_after_bind();
        ended = true;
      });
    }
    while (!ended && !(asked_to_stop && is_running())) std::this_thread::sleep_for(20ms);
    const bool failed = ended;
    handler_.drain();
    if (!failed) stop();
    const auto deadline = std::chrono::steady_clock::now() + options_.grace;
    while (!ended && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(10ms);
    closing_ = true;
    listener.join();
    if (failed) return Error{.where = fmt::format("port {}", port_), .what = "listening failed", .exit_code = 1};
    return {};
  }

  int port() const { return port_; }

 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(static_cast<int>(socket), limits_, closing_);
    current = &connection;
    handler_.begin_log();
    try {
      process(*this, connection);
    } catch (const std::exception&) {
      // What is left of the reply cannot be sent any more.
    }
    handler_.end_log();
    current = nullptr;
    return true;
  }

  // One request a connection: whoever sits on an open one holds a thread. Newer versions of httplib take the addresses.
  template <class Self>
  static void process(Self& self, Connection& connection) {
    const std::function<void(httplib::Request&)> setup = [](httplib::Request& request) {
      // Nothing here is worth being fetched in parts.
      request.ranges.clear();
      request.headers.erase("Range");
    };
    bool closed = false;
    if constexpr (requires { self.process_request(connection, true, closed, setup); }) {
      self.process_request(connection, true, closed, setup);
    } else {
      std::string remote, local;
      int remote_port = 0, local_port = 0;
      connection.get_remote_ip_and_port(remote, remote_port);
      connection.get_local_ip_and_port(local, local_port);
      self.process_request(connection, remote, remote_port, local, local_port, true, closed, setup);
    }
  }

  std::atomic<bool> closing_ = false;
  const HttpOptions options_;
  ConnectionLimits limits_;
  RequestHandler handler_;
  int port_ = 0;
};

Result<std::unique_ptr<HttpServer>> HttpServer::create(ChatService& service, HttpOptions options) {
  LILY_TRY(Access access, Access::create(options.access));
  auto impl = std::make_unique<Impl>(service, std::move(options), std::move(access));
  LILY_CHECK(impl->bind());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return impl_->port(); }
Result<void> HttpServer::serve(const std::atomic<bool>& stop) { return impl_->serve(stop); }

}  // namespace lily::server
