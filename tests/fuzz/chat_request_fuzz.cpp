// A body of /v1/chat/completions is a stranger's text: whatever it is, there is a request or an error of status 400.
#include <cstdint>
#include <cstdlib>

#include "server/api.h"
#include "server/wire.h"
#include "support/fake_chat_service.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static lily::test::FakeChatService service;
  const auto body = lily::server::parse_json({reinterpret_cast<const char*>(data), size});
  if (!std::holds_alternative<lily::OrderedJson>(body)) return 0;
  const lily::server::Api& api = lily::server::chat_completions_api();
  const auto parsed = api.parse(std::get<lily::OrderedJson>(body), service);
  if (const auto* error = std::get_if<lily::server::ApiError>(&parsed)) {
    if (error->status != 400 || error->message.empty() || error->param.empty()) std::abort();
    if (!lily::OrderedJson::accept(lily::server::json_text(api.error_document(*error)))) std::abort();
    return 0;
  }
  const auto& request = std::get<lily::server::ApiRequest>(parsed);
  const auto& chat = std::get<lily::ChatRequest>(request.request);
  if (request.n < 1 || request.n > 8 || !request.format || chat.messages.empty()) std::abort();
  if (!lily::check(chat.reply.sampling).ok()) std::abort();
  for (const std::string& stop : chat.reply.splitter.stops) {
    if (stop.empty()) std::abort();
  }
  return 0;
}
