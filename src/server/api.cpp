#include "server/api.h"

#include <fmt/format.h>

namespace lily::server {

ApiError to_api_error(const ServiceError& error) {
  const std::string message = error.error.message();
  switch (error.kind) {
    case ServiceError::Kind::bad_request:
      return {.status = 400, .type = "invalid_request_error", .message = message, .param = error.error.where};
    case ServiceError::Kind::context_overflow:
      // Agents look for either wording to decide that they have to shorten the conversation.
      return {
          .status = 400,
          .type = "invalid_request_error",
          .code = "context_length_exceeded",
          .message = fmt::format("context_length_exceeded: the request of {} tokens exceeds the available context size "
                                 "of {} tokens",
                                 error.prompt_tokens, error.context)};
    case ServiceError::Kind::busy:
      return {.status = 503, .type = "overloaded_error", .code = "busy", .message = message, .retry_after = 2};
    case ServiceError::Kind::internal: break;
  }
  return {.status = 500, .type = "server_error", .code = "internal_error", .message = message};
}

}  // namespace lily::server
