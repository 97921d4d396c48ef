#include "hub/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "hub/words.h"

namespace lily::hub {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Verdict = Attempt::Verdict;

constexpr milliseconds longest_backoff{60'000};
// The Hub counts requests in windows of five minutes; a longer pause is for the user to decide.
constexpr milliseconds longest_wait{15 * 60'000};
constexpr int64_t slowest_rate = 1024;      // bytes a second; slower is a stall
constexpr int64_t real_progress = 1 << 20;  // bytes that make the next failure the first again
constexpr size_t longest_text = 32 << 20;

bool libcurl_starts() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  return code == CURLE_OK;
}

bool is_this_machine(const std::string& address) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), &curl_url_cleanup);
  char* part = nullptr;
  if (curl_url_set(url.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK) return false;
  if (curl_url_get(url.get(), CURLUPART_HOST, &part, 0) != CURLUE_OK) return false;
  const std::string host = part;
  curl_free(part);
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

double seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000; }

Attempt failure(Verdict verdict, std::string what, std::string expected = "", std::string got = "") {
  return {verdict,
          Error{.what = std::move(what), .expected = std::move(expected), .got = std::move(got), .exit_code = 1}};
}

// Faults that another attempt cannot mend.
bool is_hopeless(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_OUT_OF_MEMORY: return true;
    default: return false;
  }
}

}  // namespace

struct Connection::Exchange {
  CURL* handle;
  const BodySink& sink;
  const Activity& activity;
  milliseconds stall_limit;
  Clock::time_point window_start = Clock::now();
  int64_t window_bytes = 0;
  int64_t received = 0;
  std::string stall;  // said of a connection that is too slow
  std::optional<ReplyHead> head;
  std::optional<Attempt> refused;
  std::array<char, CURL_ERROR_SIZE> message{};
};

Connection::Connection(const NetworkOptions& options, Activity& activity)
    : options_(options), activity_(activity), handle_(libcurl_starts() ? curl_easy_init() : nullptr) {
  // A token never crosses a network in the clear.
  const bool private_way = options.endpoint.starts_with("https://") || is_this_machine(options.endpoint);
  if (options.token.value.empty() || !private_way) return;
  headers_.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + options.token.value).c_str()));
}

size_t Connection::on_body(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<Exchange*>(context);
  const size_t bytes = size * count;
  exchange.window_bytes += static_cast<int64_t>(bytes);
  exchange.received += static_cast<int64_t>(bytes);
  if (!exchange.head) {
    ReplyHead head{};
    curl_easy_getinfo(exchange.handle, CURLINFO_RESPONSE_CODE, &head.status);
    curl_off_t length = -1;
    curl_easy_getinfo(exchange.handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    head.length = length;
    curl_header* range = nullptr;
    if (curl_easy_header(exchange.handle, "Content-Range", 0, CURLH_HEADER, -1, &range) == CURLHE_OK) {
      head.content_range = range->value;
    }
    exchange.head = head;
  }
  if (exchange.head->status != 200 && exchange.head->status != 206) return bytes;  // an error page: of no use
  exchange.refused = exchange.sink(*exchange.head, std::as_bytes(std::span(data, bytes)));
  return exchange.refused ? 0 : bytes;
}

// libcurl calls this several times a second, data or not.
int Connection::on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& exchange = *static_cast<Exchange*>(context);
  if (exchange.activity.stopping()) return 1;
  const auto now = Clock::now();
  const auto window = std::chrono::duration_cast<milliseconds>(now - exchange.window_start);
  if (window < exchange.stall_limit) return 0;
  if (exchange.window_bytes * 1000 < slowest_rate * window.count()) {
    exchange.stall = fmt::format("only {} bytes came in {:.0f} s", exchange.window_bytes, seconds(window));
    return 1;
  }
  exchange.window_start = now;
  exchange.window_bytes = 0;
  return 0;
}

void Connection::prepare(Exchange& exchange, const std::string& url, int64_t offset) {
  CURL* handle = handle_.get();
  curl_easy_reset(handle);
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "lily");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, exchange.message.data());
  // One TCP connection a file: several streams in one would share its congestion window.
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.stall_limit.count()));
  // libcurl keeps the Authorization header from any other host, port or protocol that a redirect leads to.
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
  const char* protocols = options_.endpoint.starts_with("http://") ? "http,https" : "https";
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, protocols);
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  if (offset > 0) curl_easy_setopt(handle, CURLOPT_RANGE, fmt::format("{}-", offset).c_str());
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Connection::on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 256L << 10);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &Connection::on_progress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &exchange);
}

Attempt Connection::get(const std::string& url, int64_t offset, const BodySink& sink) {
  if (!handle_) return failure(Verdict::never, "libcurl does not start");
  Exchange exchange{.handle = handle_.get(), .sink = sink, .activity = activity_, .stall_limit = options_.stall_limit};
  prepare(exchange, url, offset);
  const CURLcode code = curl_easy_perform(handle_.get());
  Attempt attempt = judge(code, exchange);
  curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &attempt.status);
  attempt.received = exchange.received;
  curl_easy_setopt(handle_.get(), CURLOPT_ERRORBUFFER, nullptr);
  return attempt;
}

Attempt Connection::judge(CURLcode code, const Exchange& exchange) const {
  if (activity_.stopping()) return {Verdict::never, interruption()};
  if (exchange.refused) return *exchange.refused;
  if (!exchange.stall.empty()) return failure(Verdict::again, exchange.stall);
  if (code == CURLE_OK) {
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    return judge_status(status);
  }
  const char* message = exchange.message[0] ? exchange.message.data() : curl_easy_strerror(code);
  return failure(is_hopeless(code) ? Verdict::never : Verdict::again, printable(message));
}

Attempt Connection::judge_status(long status) const {
  if (status == 200 || status == 206) return {};
  char* url = nullptr;
  curl_easy_getinfo(handle_.get(), CURLINFO_EFFECTIVE_URL, &url);
  const bool from_endpoint = url && std::string(url).starts_with(options_.endpoint + "/");
  // A storage host that refuses has mostly an address that ran out: the Hub signs a new one for the next
  // attempt.
  if (!from_endpoint || status == 408 || status == 425 || status == 429 || status == 416 || status >= 500) {
    Attempt attempt = failure(Verdict::again, fmt::format("the server answers {}", status));
    if (status == 429) attempt.error.what += ", too many requests";
    attempt.wait = asked_wait();
    return attempt;
  }
  if (status == 401 || status == 403) return {Verdict::never, access_error(status)};
  if (status != 404) return failure(Verdict::never, fmt::format("the server answers {}", status));
  Error error{.what = "not found on " + options_.endpoint, .expected = "an ORGANISATION/NAME that exists there"};
  if (header("X-Error-Code") == "RevisionNotFound") {
    error = {.what = "no such revision", .expected = "a branch, tag or commit of that repository"};
  }
  return {Verdict::never, error};
}

Error Connection::access_error(long status) const {
  const std::string said = printable(header("X-Error-Message"));
  const std::string got = fmt::format("{}{}{}", status, said.empty() ? "" : " ", said);
  if (header("X-Error-Code") == "GatedRepo") {
    return {.what = "this repository is gated",
            .expected = "its terms accepted on " + options_.endpoint + ", and HF_TOKEN set to a token of that account",
            .got = got};
  }
  if (headers_) {
    return {.what = "the access token from " + options_.token.origin + " is refused",
            .expected = "a token that may read this repository, in HF_TOKEN",
            .got = got};
  }
  // The Hub answers so for what does not exist, too: it does not tell strangers which private names are
  // taken.
  return {.what = "not found, or private",
          .expected = "the right name, or HF_TOKEN set to a token that may read it",
          .got = got};
}

std::string Connection::header(const char* name) const {
  curl_header* found = nullptr;
  return curl_easy_header(handle_.get(), name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value : "";
}

milliseconds Connection::asked_wait() const {
  curl_off_t retry_after = 0;  // seconds, whichever form the header had
  curl_easy_getinfo(handle_.get(), CURLINFO_RETRY_AFTER, &retry_after);
  // The Hub tells the rest of its window as `RateLimit: "resolvers";r=0;t=87`.
  const std::string limit = header("RateLimit");
  const size_t rest = limit.find(";t=");
  const long window = rest == std::string::npos ? 0 : std::strtol(limit.c_str() + rest + 3, nullptr, 10);
  return std::chrono::seconds(std::clamp<int64_t>(std::max<int64_t>(retry_after, window), 0, 1'000'000));
}

milliseconds Connection::backoff(int failures) {
  const milliseconds full = std::min(longest_backoff, options_.retry_wait * (int64_t{1} << std::min(failures - 1, 10)));
  // Chance spreads the clients that one outage has put in step.
  return milliseconds(std::uniform_int_distribution<int64_t>(full.count() / 2, full.count())(random_));
}

Result<void> Connection::retry(const std::string& where, const std::function<Attempt()>& attempt) {
  for (int failures = 0;;) {
    Attempt tried = attempt();
    if (tried.verdict == Verdict::done) return {};
    Error error = std::move(tried.error);
    if (activity_.stopping()) return error;
    if (error.where.empty()) error.where = where;
    if (tried.verdict == Verdict::never) return error;
    failures = tried.received >= real_progress ? 1 : failures + 1;
    if (failures > options_.retries) {
      if (failures > 1) error.what += fmt::format(" (tried {} times)", failures);
      return error;
    }
    const milliseconds wait = std::max(tried.wait, backoff(failures));
    if (wait > longest_wait) {
      error.what += fmt::format(", and asks to come back in {:.0f} minutes", seconds(wait) / 60);
      return error;
    }
    activity_.note(fmt::format("{}; trying again in {:.1f} s", error.message(), seconds(wait)));
    if (!activity_.sleep(wait)) return interruption();
  }
}

Result<std::string> Connection::get_text(const std::string& where, const std::string& url) {
  std::string text;
  const auto keep = [&](const ReplyHead&, std::span<const std::byte> bytes) -> std::optional<Attempt> {
    if (text.size() + bytes.size() > longest_text) return failure(Verdict::never, "the answer is too long");
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return std::nullopt;
  };
  LILY_CHECK(retry(where, [&] {
    text.clear();
    return get(url, 0, keep);
  }));
  return text;
}

std::string Connection::escaped(const std::string& part) {
  char* text = curl_easy_escape(nullptr, part.c_str(), static_cast<int>(part.size()));
  std::string result = text ? text : "";
  curl_free(text);
  return result;
}

}  // namespace lily::hub
