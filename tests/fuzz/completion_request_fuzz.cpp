// The same for /v1/completions.
#include <cstdint>
#include <cstdlib>

#include "server/api.h"
#include "server/wire.h"
#include "support/fake_chat_service.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static lily::test::FakeChatService service;
  const auto body = lily::server::parse_json({reinterpret_cast<const char*>(data), size});
  if (!std::holds_alternative<lily::OrderedJson>(body)) return 0;
  const auto parsed = lily::server::completions_api().parse(std::get<lily::OrderedJson>(body), service);
  if (const auto* error = std::get_if<lily::server::ApiError>(&parsed)) {
    if (error->status != 400 || error->message.empty() || error->param.empty()) std::abort();
    return 0;
  }
  const auto& completion = std::get<lily::CompletionRequest>(std::get<lily::server::ApiRequest>(parsed).request);
  if (!lily::check(completion.reply.sampling).ok()) std::abort();
  for (const int32_t id : completion.ids) {
    if (id < 0 || id >= service.tokenizer().size()) std::abort();
  }
  return 0;
}
