#include "server/http_server.h"

namespace lily::server {

std::vector<ApiRoute> all_routes() {
  return {
      {"/chat/completions", &chat_completions_api()},
      {"/completions", &completions_api()},
      {"/responses", &responses_api()},
      {"/messages", &messages_api()},
      {"/messages/count_tokens", &messages_api(), parse_count_tokens},
  };
}

}  // namespace lily::server
