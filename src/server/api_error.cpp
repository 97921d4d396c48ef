#include "server/api.h"

namespace lily::server {
namespace {

// Clients look for these words to decide that they must compact the conversation, each for its own.
std::string overflow_message(const ServiceError& error) {
  const std::string prompt = std::to_string(error.prompt_tokens), context = std::to_string(error.context);
  return "context_length_exceeded: the request (" + prompt + " tokens) exceeds the available context size (" + context +
         " tokens); prompt is too long: " + prompt + " tokens > " + context + " maximum";
}

}  // namespace

ApiError to_api_error(const ServiceError& error) {
  switch (error.kind) {
    case ServiceError::Kind::bad_request:
      return {
          .status = 400, .type = "invalid_request_error", .message = error.error.message(), .param = error.error.where};
    case ServiceError::Kind::context_overflow:
      return {.status = 400,
              .type = "invalid_request_error",
              .code = "context_length_exceeded",
              .message = overflow_message(error)};
    case ServiceError::Kind::busy:
      return {.status = 503,
              .type = "overloaded_error",
              .code = "server_busy",
              .message = error.error.message(),
              .retry_after = 1};
    case ServiceError::Kind::internal: break;
  }
  return {.status = 500, .type = "server_error", .code = "server_error", .message = error.error.message()};
}

}  // namespace lily::server
