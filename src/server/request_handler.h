// What each request gets: checks, pages, replies of the APIs. Knows httplib's requests, not its sockets.
#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "server/access.h"
#include "server/http_server.h"
#include "server/reply_loop.h"
#include "server/status_pages.h"

namespace lily::server {

class RequestHandler {
 public:
  using MakeClient = std::function<std::unique_ptr<Client>(httplib::DataSink*)>;

  // All outlive it. `closing`: running replies are to end at once.
  RequestHandler(ChatService& service, const HttpOptions& options, Access access, const std::atomic<bool>& closing);

  void drain() { draining_ = true; }  // no new replies

  // Everything but the body of a request to an API. False: that body is wanted.
  bool answer_head(const httplib::Request& request, httplib::Response& response);
  // `make_client` may be called until the response is sent, in the same thread.
  void answer_api(const ApiRoute& route, const httplib::Request& request, httplib::Response& response,
                  const MakeClient& make_client);
  // A body for an error that httplib found.
  void answer_fault(const httplib::Request& request, httplib::Response& response, bool too_large);

  // One line of the log for each connection's request: begin, note, end in its thread.
  void begin_log();
  void note_status(const httplib::Request& request, const httplib::Response& response);
  void end_log();

 private:
  bool refuse(const httplib::Request& request, httplib::Response& response);
  bool refuse_body(const httplib::Request& request, httplib::Response& response);
  bool answer_page(const std::string& path, const httplib::Request& request, httplib::Response& response);
  bool answer_asset(const std::string& path, const httplib::Request& request, httplib::Response& response);
  bool answer_model(const std::string& path, httplib::Response& response);
  void answer_preflight(const httplib::Request& request, httplib::Response& response);
  void answer_error(const std::string& path, const ApiError& error, httplib::Response& response);
  void answer_count(const ApiRoute& route, const OrderedJson& body, httplib::Response& response);
  void start(const ApiRoute& route, const OrderedJson& body, httplib::Response& response,
             const MakeClient& make_client);
  void run(const ApiRoute& route, ApiRequest request, httplib::Response& response, const MakeClient& make_client);
  std::variant<std::vector<std::shared_ptr<Job>>, ApiError> start_jobs(ApiRequest& request);
  std::optional<ApiError> check_model(const OrderedJson& body) const;
  const ApiRoute* route_of(const std::string& path) const;

  ChatService& service_;
  const HttpOptions& options_;
  const Access access_;
  const std::atomic<bool>& closing_;
  std::atomic<bool> draining_ = false;
  HttpCounters counters_;
  const int64_t created_;
};

}  // namespace lily::server
