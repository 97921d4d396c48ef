#include "server/request_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/openai_reply.h"
#include "server/openai_request.h"
#include "server/wire.h"

namespace lily::server {
namespace {

using Clock = std::chrono::steady_clock;

// Of the request that this thread works on.
struct LogEntry {
  std::string method, path;
  int status = 0;
  Clock::time_point start;
  std::optional<LoopResult> reply;
};
thread_local LogEntry entry;

constexpr const char* json_type = "application/json";

std::string path_below_v1(const std::string& path) { return path.starts_with("/v1/") ? path.substr(3) : path; }

bool is_json(std::string type) {
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  type = type.substr(0, type.find(';'));
  type.erase(type.find_last_not_of(" \t") + 1);
  return type.empty() || type == json_type;
}

std::string_view type_of(std::string_view path) {
  static constexpr std::pair<std::string_view, std::string_view> types[] = {
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".woff2", "font/woff2"},
      {".webmanifest", "application/manifest+json"},
      {".json", json_type},
      {".txt", "text/plain; charset=utf-8"},
  };
  for (const auto& [end, type] : types) {
    if (path.ends_with(end)) return type;
  }
  return "application/octet-stream";
}

// The whole value: httplib's own way of asking for it ends at a NUL byte, behind which anything could follow.
std::string header(const httplib::Request& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

// For the log: one word, whatever the client sent.
std::string printable(std::string text) {
  for (char& c : text) c = c > ' ' && c < 0x7f ? c : '?';
  return text.substr(0, 200);
}

}  // namespace

RequestHandler::RequestHandler(ChatService& service, const HttpOptions& options, Access access,
                               const std::atomic<bool>& closing)
    : service_(service), options_(options), access_(std::move(access)), closing_(closing), created_(unix_time()) {}

void RequestHandler::begin_log() { entry = {.start = Clock::now()}; }

void RequestHandler::note_status(const httplib::Request& request, const httplib::Response& response) {
  entry.method = request.method;
  entry.path = request.path;
  entry.status = response.status;
}

void RequestHandler::end_log() {
  if (entry.status == 0) return;  // nobody asked anything
  const auto& reply = entry.reply;
  const int status = reply && reply->gone ? 499 : entry.status;
  counters_.count(status);
  if (!options_.log) return;
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - entry.start).count();
  std::string line = fmt::format("{} {} {} {} ms", printable(entry.method), printable(entry.path), status, time);
  if (reply) {
    line += fmt::format(", {} tokens, prompt {}, cached {}, known {}", reply->tokens, reply->prompt_tokens,
                        reply->cached_tokens, reply->known_tokens);
    if (reply->gone) line += ", the client had gone";
    else if (reply->error) line += ", " + Error{.what = reply->error->message}.message();
  }
  options_.log(line);
}

const ApiRoute* RequestHandler::route_of(const std::string& path) const {
  const std::string below = path_below_v1(path);
  for (const ApiRoute& route : options_.routes) {
    if (route.path == below) return &route;
  }
  return nullptr;
}

void RequestHandler::answer_error(const std::string& path, const ApiError& error, httplib::Response& response) {
  const ApiRoute* route = route_of(path);
  response.status = error.status;
  if (error.retry_after > 0) response.set_header("Retry-After", std::to_string(error.retry_after));
  response.set_content(json_text(route ? route->api->error_document(error) : openai_error(error)), json_type);
}

// Everything that can be refused before any of the body is read.
bool RequestHandler::refuse(const httplib::Request& request, httplib::Response& response) {
  const auto refused = [&](ApiError error) { return answer_error(request.path, error, response), true; };
  const std::string host = header(request, "Host");
  if (request.get_header_value_count("Host") != 1 || !access_.allows_host(host)) {
    return refused({.status = 403,
                    .type = "permission_error",
                    .code = "host_not_allowed",
                    .message = "this name of the server is not allowed; --allow-host NAME adds one"});
  }
  if (request.has_header("Origin")) {
    const auto allowed = access_.allow_origin(header(request, "Origin"), host);
    if (!allowed) {
      return refused({.status = 403,
                      .type = "permission_error",
                      .code = "origin_not_allowed",
                      .message = "pages of this origin are not allowed; --cors-origin ORIGIN adds one"});
    }
    if (!allowed->empty()) response.set_header("Access-Control-Allow-Origin", *allowed);
    response.set_header("Vary", "Origin");
  }
  if (request.method == "OPTIONS") return answer_preflight(request, response), true;
  const bool open = request.path == "/health" || request.path == "/v1/health";
  const bool page =
      (request.method == "GET" || request.method == "HEAD") && answer_asset(request.path, request, response);
  if (page) return true;
  if (!open && !access_.allows_key(header(request, "Authorization"), header(request, "x-api-key"))) {
    response.set_header("WWW-Authenticate", "Bearer");
    return refused({.status = 401,
                    .type = "authentication_error",
                    .code = "invalid_api_key",
                    .message = "the API key is missing or wrong"});
  }
  return false;
}

// Only in requests to an API.
bool RequestHandler::refuse_body(const httplib::Request& request, httplib::Response& response) {
  const auto refused = [&](int status, const std::string& message) {
    answer_error(request.path, {.status = status, .type = "invalid_request_error", .message = message}, response);
    return true;
  };
  const std::string coding = request.get_header_value("Transfer-Encoding");
  if (!is_json(request.get_header_value("Content-Type")))
    return refused(415, "Content-Type: expected application/json");
  if (request.has_header("Content-Encoding")) return refused(415, "Content-Encoding: expected none");
  if (!coding.empty() && coding != "chunked") return refused(501, "Transfer-Encoding: expected chunked or none");
  if (coding.empty()) {
    const std::string length = request.get_header_value("Content-Length");
    const auto digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    if (length.empty()) return refused(411, "Content-Length: missing");
    if (request.get_header_value_count("Content-Length") != 1 || !std::all_of(length.begin(), length.end(), digit)) {
      return refused(400, "Content-Length: expected one number");
    }
    if (length.size() > 18 || std::stoull(length) > options_.body_bytes) {
      return refused(413, fmt::format("the body is too large: expected at most {} bytes", options_.body_bytes));
    }
  }
  return false;
}

bool RequestHandler::answer_head(const httplib::Request& request, httplib::Response& response) {
  response.set_header("X-Content-Type-Options", "nosniff");
  if (refuse(request, response)) return true;
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (get && answer_page(request.path, request, response)) return true;
  const ApiRoute* route = route_of(request.path);
  if (route && request.method == "POST") return refuse_body(request, response);
  httplib::Response unused;
  const bool known = route || answer_page(request.path, request, unused) || answer_asset(request.path, request, unused);
  if (known) response.set_header("Allow", route ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
  answer_error(request.path,
               {.status = known ? 405 : 404,
                .type = "invalid_request_error",
                .code = known ? "method_not_allowed" : "not_found",
                .message = fmt::format("{} {}: {}", printable(request.method), printable(request.path),
                                       known ? "the method is not allowed" : "there is no such path")},
               response);
  return true;
}

void RequestHandler::answer_preflight(const httplib::Request& request, httplib::Response& response) {
  response.status = 204;
  if (!request.has_header("Origin")) {
    response.set_header("Allow", route_of(request.path) ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
    return;
  }
  if (!response.has_header("Access-Control-Allow-Origin")) return;  // a page of this server
  const std::string wanted = request.get_header_value("Access-Control-Request-Headers");
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == ',' || c == ' ' || c == '_'; };
  response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  if (std::all_of(wanted.begin(), wanted.end(), plain)) response.set_header("Access-Control-Allow-Headers", wanted);
  response.set_header("Access-Control-Max-Age", "600");
  if (request.has_header("Access-Control-Request-Private-Network")) {
    response.set_header("Access-Control-Allow-Private-Network", "true");
  }
}

bool RequestHandler::answer_page(const std::string& path, const httplib::Request&, httplib::Response& response) {
  const std::string below = path_below_v1(path);
  if (below == "/health") response.set_content(json_text(health_document(service_)), json_type);
  else if (below == "/metrics") response.set_content(metrics_text(service_, counters_), "text/plain; version=0.0.4");
  else if (below == "/models") {
    response.set_content(json_text(models_document(service_, options_.aliases, created_)), json_type);
  } else if (below.starts_with("/models/")) {
    return answer_model(below, response);
  } else {
    return false;
  }
  response.status = 200;
  return true;
}

// Names of models may hold slashes.
bool RequestHandler::answer_model(const std::string& path, httplib::Response& response) {
  const OrderedJson asked = {{"model", path.substr(std::string("/models/").size())}};
  if (const auto error = check_model(asked)) return answer_error(path, *error, response), true;
  response.status = 200;
  response.set_content(json_text(model_document(service_, asked["model"].get<std::string>(), created_)), json_type);
  return true;
}

bool RequestHandler::answer_asset(const std::string& path, const httplib::Request& request,
                                  httplib::Response& response) {
  const std::string wanted = path == "/" ? "/index.html" : path;
  for (const WebAsset& asset : options_.assets) {
    if (asset.path != wanted) continue;
    response.set_header("Content-Security-Policy",
                        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cache-Control", "no-cache");
    response.set_header("ETag", std::string(asset.tag));
    response.status = request.get_header_value("If-None-Match") == asset.tag ? 304 : 200;
    if (response.status == 200) {
      response.set_content(asset.bytes.data(), asset.bytes.size(), std::string(type_of(wanted)));
    }
    return true;
  }
  return false;
}

std::optional<ApiError> RequestHandler::check_model(const OrderedJson& body) const {
  const auto found = body.is_object() ? body.find("model") : body.end();
  if (found == body.end() || !found->is_string()) return std::nullopt;  // the default one, or the API's to refuse
  const auto& name = found->get_ref<const std::string&>();
  const auto& aliases = options_.aliases;
  const bool known = name.empty() || name == "default" || name == service_.model_name() ||
                     std::find(aliases.begin(), aliases.end(), name) != aliases.end();
  if (known) return std::nullopt;
  const std::string message = Error{.where = "model",
                                    .what = "no such model (--alias NAME makes the server know it under another name)",
                                    .expected = service_.model_name(),
                                    .got = name.substr(0, 100)}
                                  .message();
  return ApiError{
      .status = 404, .type = "invalid_request_error", .code = "model_not_found", .message = message, .param = "model"};
}

void RequestHandler::answer_api(const ApiRoute& route, const httplib::Request& request, httplib::Response& response,
                                const MakeClient& make_client) {
  try {
    auto body = parse_json(request.body);
    if (const auto* reason = std::get_if<std::string>(&body)) {
      return answer_error(route.path, {.status = 400, .type = "invalid_request_error", .message = *reason}, response);
    }
    start(route, std::get<OrderedJson>(body), response, make_client);
  } catch (const std::exception&) {
    answer_error(route.path,
                 {.status = 500, .type = "server_error", .code = "internal_error", .message = "internal error"},
                 response);
  }
}

void RequestHandler::start(const ApiRoute& route, const OrderedJson& body, httplib::Response& response,
                           const MakeClient& make_client) {
  if (draining_) {
    return answer_error(
        route.path, {.status = 503, .type = "server_error", .code = "shutting_down", .message = "the server is ending"},
        response);
  }
  if (const auto error = check_model(body)) return answer_error(route.path, *error, response);
  if (route.parse_count) return answer_count(route, body, response);
  auto parsed = route.api->parse(body, service_);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return answer_error(route.path, *error, response);
  auto& request = std::get<ApiRequest>(parsed);
  for (const std::string& warning : request.warnings) {
    if (options_.log) options_.log(Error{.where = route.path, .what = warning}.message());
  }
  run(route, std::move(request), response, make_client);
}

void RequestHandler::answer_count(const ApiRoute& route, const OrderedJson& body, httplib::Response& response) {
  const auto parsed = route.parse_count(body, service_);
  if (const auto* error = std::get_if<ApiError>(&parsed)) return answer_error(route.path, *error, response);
  const Result<int64_t> count = service_.count_tokens(std::get<ChatRequest>(parsed));
  if (!count) {
    return answer_error(route.path, to_api_error({.kind = ServiceError::Kind::bad_request, .error = count.error()}),
                        response);
  }
  response.status = 200;
  response.set_content(json_text(OrderedJson{{"input_tokens", *count}}), json_type);
}

std::variant<std::vector<std::shared_ptr<Job>>, ApiError> RequestHandler::start_jobs(ApiRequest& request) {
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < request.n; ++i) {
    ChatService::Started started =
        std::visit([&](const auto& typed) { return service_.start(typed); }, request.request);
    if (const auto* error = std::get_if<ServiceError>(&started)) return to_api_error(*error);  // drops the others
    jobs.push_back(std::get<std::shared_ptr<Job>>(std::move(started)));
    std::visit([](auto& typed) { ++typed.reply.sampling.seed; }, request.request);
  }
  return jobs;
}

void RequestHandler::run(const ApiRoute& route, ApiRequest request, httplib::Response& response,
                         const MakeClient& make_client) {
  auto started = start_jobs(request);
  if (const auto* error = std::get_if<ApiError>(&started)) return answer_error(route.path, *error, response);
  auto jobs = std::get<std::vector<std::shared_ptr<Job>>>(std::move(started));
  const LoopOptions loop{.stream = request.stream, .keep_alive = options_.keep_alive, .closing = &closing_};
  if (!request.stream) {
    entry.reply = run_reply(std::move(jobs), *request.format, *make_client(nullptr), loop);
    if (entry.reply->error) return answer_error(route.path, *entry.reply->error, response);
    response.status = 200;
    return response.set_content(json_text(request.format->document()), json_type);
  }
  response.status = 200;
  response.set_header("Cache-Control", "no-cache");
  response.set_header("X-Accel-Buffering", "no");
  const std::shared_ptr<ReplyFormat> format = std::move(request.format);
  response.set_chunked_content_provider(
      "text/event-stream", [=, jobs = std::move(jobs)](size_t, httplib::DataSink& sink) mutable {
        const auto client = make_client(&sink);
        try {
          entry.reply = run_reply(std::exchange(jobs, {}), *format, *client, loop);
        } catch (const std::exception&) {
          std::vector<SseEvent> events;
          format->fail({.status = 500, .type = "server_error", .code = "internal_error", .message = "internal error"},
                       events);
          for (const SseEvent& event : events) client->send(sse_text(event));
        }
        sink.done();
        return !(entry.reply && entry.reply->gone);
      });
}

void RequestHandler::answer_fault(const httplib::Request& request, httplib::Response& response, bool too_large) {
  if (!response.body.empty()) return;
  const int status = too_large ? 413 : response.status;
  const char* what = status == 413   ? "the request is too large"
                     : status == 414 ? "the path is too long"
                     : status >= 500 ? "internal error"
                                     : "not a valid HTTP request";
  answer_error(request.path,
               {.status = status, .type = status >= 500 ? "server_error" : "invalid_request_error", .message = what},
               response);
}

}  // namespace lily::server
