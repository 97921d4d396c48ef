// What an API of the server is: JSON -> a request, and a reply's steps -> a JSON document or a stream of events. Nothing here
// knows HTTP connections or the model.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "runtime/chat_service.h"
#include "text/chat.h"

namespace lily::server {

// One server-sent event: "event: NAME\ndata: DATA\n\n", without the first line where the name is empty. A name of ":" makes
// it a comment.
struct SseEvent {
  std::string name;
  std::string data;
};

// An error as the client sees it.
struct ApiError {
  int status = 400;  // of HTTP
  std::string type;  // "invalid_request_error", ...
  std::string code;  // "context_length_exceeded", ... or empty
  std::string message;
  std::string param;    // the field, or empty
  int retry_after = 0;  // seconds; 0: none
};
ApiError to_api_error(const ServiceError& error);

// Shapes one request's replies. Steps and finishes come in order for each choice; choices may be interleaved. The same calls
// make the stream and the document.
class ReplyFormat {
 public:
  virtual ~ReplyFormat() = default;
  virtual void begin(std::vector<SseEvent>& out) = 0;  // before the first step
  virtual void step(int choice, const ReplyStep& step, std::vector<SseEvent>& out) = 0;
  virtual void finish(int choice, const Reply& reply, std::vector<SseEvent>& out) = 0;
  virtual void end(std::vector<SseEvent>& out) = 0;                          // after the last finish
  virtual void fail(const ApiError& error, std::vector<SseEvent>& out) = 0;  // instead of all that is missing
  virtual SseEvent keep_alive() = 0;                                         // in a silent phase
  virtual OrderedJson document() = 0;                                        // after end()
};

struct ApiRequest {
  std::variant<ChatRequest, CompletionRequest> request;
  int n = 1;  // choices, whose seeds are seed, seed + 1, ...
  bool stream = false;
  std::unique_ptr<ReplyFormat> format;
  std::vector<std::string> warnings;  // what was left out of the request, a line each, for the log
};

// One of the APIs. The model's name is checked before `parse`.
struct Api {
  std::variant<ApiRequest, ApiError> (*parse)(const OrderedJson& body, const ChatService& service);
  OrderedJson (*error_document)(const ApiError& error);  // {"error": {...}} in the API's own shape
};

const Api& chat_completions_api();
const Api& completions_api();
const Api& responses_api();
const Api& messages_api();

// POST /v1/messages/count_tokens: what ChatService::count_tokens counts. The answer is {"input_tokens": N}.
std::variant<ChatRequest, ApiError> parse_count_tokens(const OrderedJson& body, const ChatService& service);

}  // namespace lily::server
