// From the jobs of one request to its client: events as they come, signs of life while there are none, and an end as soon
// as nobody listens any more.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "server/api.h"

namespace lily::server {

class Client {
 public:
  virtual ~Client() = default;
  virtual bool send(std::string_view text) = 0;  // false: it cannot be reached
  virtual bool gone() = 0;
};

struct LoopOptions {
  bool stream = false;  // else nothing is sent, and the caller asks for the document
  std::chrono::milliseconds keep_alive{3000};
  const std::atomic<bool>* closing = nullptr;  // the server ends
};

struct LoopResult {
  bool gone = false;                                                           // the client; all jobs are cancelled
  std::optional<ApiError> error;                                               // which a stream has been told already
  int64_t tokens = 0, prompt_tokens = 0, cached_tokens = 0, known_tokens = 0;  // see Reply
};

LoopResult run_reply(std::vector<std::shared_ptr<Job>> jobs, ReplyFormat& format, Client& client,
                     const LoopOptions& options);

}  // namespace lily::server
