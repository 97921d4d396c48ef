// GET by libcurl: redirects, credentials, stalls and retries in one place.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "base/result.h"
#include "hub/activity.h"
#include "hub/settings.h"

namespace lily::hub {

struct NetworkOptions {
  std::string endpoint;
  Token token;
  int retries = 8;                               // in a row, without progress
  std::chrono::milliseconds retry_wait{1000};    // before the first retry, doubled before each further one
  std::chrono::milliseconds stall_limit{30000};  // a connection that brings (almost) nothing for so long is dropped
};

// How one GET ended.
struct Attempt {
  enum class Verdict { done, again, never };  // `again`: worth another attempt
  Verdict verdict = Verdict::done;
  Error error;
  long status = 0;                    // of the last reply; 0 where none came
  int64_t received = 0;               // bytes of body
  std::chrono::milliseconds wait{0};  // what the server asked for before the next attempt
};

// The head of a reply with a body to keep (status 200 or 206).
struct ReplyHead {
  long status;
  int64_t length;             // Content-Length, -1 where absent
  std::string content_range;  // empty where absent
};

// Takes the body piece by piece; an Attempt given back ends the transfer.
using BodySink = std::function<std::optional<Attempt>(const ReplyHead&, std::span<const std::byte>)>;

// One connection, for one thread.
class Connection {
 public:
  Connection(const NetworkOptions& options, Activity& activity);

  // The bytes of `url` from `offset` on.
  Attempt get(const std::string& url, int64_t offset, const BodySink& sink);

  // Repeats `attempt` with growing pauses until it is done, is hopeless, or has failed too often without
  // progress.
  Result<void> retry(const std::string& where, const std::function<Attempt()>& attempt);

  // A whole small text, retried.
  Result<std::string> get_text(const std::string& where, const std::string& url);

  // A part of a path as it stands in an address.
  static std::string escaped(const std::string& part);

 private:
  struct Exchange;
  static size_t on_body(char* data, size_t size, size_t count, void* exchange);
  static int on_progress(void* exchange, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

  void prepare(Exchange& exchange, const std::string& url, int64_t offset);
  Attempt judge(CURLcode code, const Exchange& exchange) const;
  Attempt judge_status(long status) const;
  Error access_error(long status) const;
  std::string header(const char* name) const;
  std::chrono::milliseconds asked_wait() const;
  std::chrono::milliseconds backoff(int failures);

  struct Free {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  const NetworkOptions& options_;
  Activity& activity_;
  std::unique_ptr<CURL, Free> handle_;
  std::unique_ptr<curl_slist, Free> headers_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace lily::hub
