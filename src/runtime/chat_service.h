// What a server offers: messages in, a running job out. Knows prompts, constraints and how to show a past reply exactly as it
// was sampled.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/scheduler.h"
#include "text/chat.h"

namespace lily {

struct ToolChoice {
  enum class Kind { automatic, none, required, named };
  Kind kind = Kind::automatic;
  std::string name;      // named
  bool parallel = true;  // false: at most one call
};

struct ChatRequest {
  std::vector<Message> messages;  // as they came: normalize_messages is applied
  bool enable_thinking = true;
  std::optional<bool> preserve_thinking;  // unset: replies that this server made are shown exactly as they were sampled
  std::vector<OrderedJson> tools;
  ToolChoice tool_choice;
  bool json = false;                       // the content must be a JSON object, or
  std::optional<OrderedJson> json_schema;  // what this allows
  std::string schema_field;                // where the client wrote it, for errors
  ReplyOptions reply;                      // end_tokens, splitter.tools and constraint are filled in
};

struct CompletionRequest {
  std::string prompt;        // ordinary text, or
  std::vector<int32_t> ids;  // token ids, where not empty
  ReplyOptions reply;
};

struct ContextOverflow {
  int64_t prompt_tokens, context;
};

struct ServiceError {
  enum class Kind { bad_request, context_overflow, busy, internal };
  Kind kind;
  Error error;                             // where: the field of the request
  int64_t prompt_tokens = 0, context = 0;  // of context_overflow
};

class ChatService {
 public:
  using Started = std::variant<std::shared_ptr<Job>, ServiceError>;

  virtual ~ChatService() = default;
  virtual Started start(const ChatRequest& request) = 0;
  virtual Started start(const CompletionRequest& request) = 0;
  virtual Result<int64_t> count_tokens(const ChatRequest& request) = 0;

  virtual const SamplingParams& default_sampling(bool thinking) const = 0;  // the model card's
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const std::string& model_name() const = 0;
  virtual int64_t context() const = 0;
  virtual SchedulerStats stats() const = 0;
};

// The parts must outlive the service.
struct ChatServiceParts {
  std::string model_name;
  Backend* backend;
  const Tokenizer* tokenizer;
  SamplingParams sampling;
  TemplateVersion version = TemplateVersion::qwen3_6;
};
// `store`: where sessions outlive the process; an empty directory: nowhere. One that cannot be used is a warning, not an
// error.
Result<std::unique_ptr<ChatService>> make_chat_service(const ChatServiceParts& parts, const SchedulerOptions& options,
                                                       const StoreOptions& store);

}  // namespace lily
