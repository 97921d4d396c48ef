#include "runtime/chat_service.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "runtime/prompt_writer.h"

namespace lily {
namespace {

// An error of a schema says where in the schema it is; the client wants to know where in the request.
Error in_schema(Error error, const std::string& field) {
  if (!field.empty()) error.where = error.where.empty() ? field : field + "." + error.where;
  return error;
}

ServiceError bad_request(Error error) { return {ServiceError::Kind::bad_request, std::move(error)}; }

const std::string& name_of_tool(const OrderedJson& tool) {
  return tool.at("function").at("name").get_ref<const std::string&>();
}

// The model card's advice for answers without thinking, where the model's own file is the advice for thinking.
SamplingParams direct_sampling(SamplingParams params) {
  if (params.temperature == 0) return params;
  params.temperature = 0.7f;
  params.top_p = 0.8f;
  params.presence_penalty = 1.5f;
  return params;
}

class Service : public ChatService {
 public:
  Service(const ChatServiceParts& parts, std::unique_ptr<Scheduler> scheduler, const std::string& memory_file)
      : parts_(parts),
        direct_sampling_(direct_sampling(parts.sampling)),
        memory_(memory_file),
        prompts_(*parts.tokenizer, memory_),
        scheduler_(std::move(scheduler)) {}

  Started start(const ChatRequest& request) override {
    Result<Prompt> prompt = write(request);
    if (!prompt) return bad_request(prompt.error());
    ReplyOptions reply = request.reply;
    if (const Result<void> prepared = prepare(request, reply); !prepared) return bad_request(prepared.error());
    auto shared = std::make_shared<const Prompt>(std::move(prompt).value());
    JobRequest job = {.prompt = shared->ids, .boundaries = shared->boundaries, .reply = std::move(reply)};
    job.on_finished = [this, shared](const Reply& done) {
      prompts_.remember(*shared, done);
      return prompts_.closing(done);
    };
    return submit(std::move(job));
  }

  Started start(const CompletionRequest& request) override {
    JobRequest job = {.prompt = request.ids, .reply = request.reply};
    if (job.prompt.empty()) job.prompt = parts_.tokenizer->encode(request.prompt);
    if (job.prompt.empty()) job.prompt = parts_.tokenizer->encode("\n");  // a reply needs something to follow
    job.reply.end_tokens = parts_.backend->config().eos_token_ids;
    return submit(std::move(job));
  }

  Result<int64_t> count_tokens(const ChatRequest& request) override {
    LILY_TRY(const Prompt prompt, write(request));
    return static_cast<int64_t>(prompt.ids.size());
  }

  const SamplingParams& default_sampling(bool thinking) const override {
    return thinking ? parts_.sampling : direct_sampling_;
  }
  const Tokenizer& tokenizer() const override { return *parts_.tokenizer; }
  const std::string& model_name() const override { return parts_.model_name; }
  int64_t context() const override { return scheduler_->context(); }
  SchedulerStats stats() const override { return scheduler_->stats(); }

 private:
  Result<Prompt> write(const ChatRequest& request) {
    ChatOptions options = {.version = parts_.version,
                           .enable_thinking = request.enable_thinking,
                           .preserve_thinking = request.preserve_thinking.value_or(false),
                           .tools = request.tools};
    return prompts_.write(normalize_messages(request.messages), options, request.preserve_thinking.value_or(true));
  }

  // Fills in what follows from tools and formats.
  Result<void> prepare(const ChatRequest& request, ReplyOptions& reply) {
    using Kind = ToolChoice::Kind;
    const ToolChoice& choice = request.tool_choice;
    reply.end_tokens = parts_.backend->config().eos_token_ids;
    reply.single_call = !choice.parallel;
    if (choice.kind != Kind::none) {
      reply.splitter.tools = request.tools;
    } else if (const auto open = parts_.tokenizer->added_token("<tool_call>")) {
      reply.sampling.logit_bias[*open] = -std::numeric_limits<float>::max();
    }
    if (choice.kind == Kind::required || choice.kind == Kind::named) {
      LILY_TRY(reply.constraint, constraint_of_call(request));
    } else if (request.json || request.json_schema) {
      const OrderedJson* schema = request.json_schema ? &*request.json_schema : nullptr;
      auto made = json_constraint(trie(), schema);
      if (!made) return in_schema(made.error(), request.schema_field);
      reply.constraint = std::move(*made);
    }
    return {};
  }

  Result<std::unique_ptr<TokenConstraint>> constraint_of_call(const ChatRequest& request) {
    const ToolChoice& choice = request.tool_choice;
    std::vector<OrderedJson> tools = request.tools;
    if (choice.kind == ToolChoice::Kind::named) {
      std::erase_if(tools, [&](const OrderedJson& tool) { return name_of_tool(tool) != choice.name; });
    }
    if (tools.empty()) {
      return Error{"tool_choice", "no such tool", "the name of one of the tools", choice.name};
    }
    return call_constraint(trie(), tools, choice.parallel);
  }

  Started submit(JobRequest job) {
    if (const Result<void> checked = check(job.reply); !checked) return bad_request(checked.error());
    const auto tokens = static_cast<int64_t>(job.prompt.size()), most = context();
    if (tokens >= most) {
      return ServiceError{ServiceError::Kind::context_overflow,
                          {.where = "messages", .what = "the prompt is too long for the context"},
                          tokens,
                          most};
    }
    if (std::shared_ptr<Job> started = scheduler_->submit(std::move(job))) return started;
    return ServiceError{ServiceError::Kind::busy, {.where = "server", .what = "too many requests wait already"}};
  }

  std::shared_ptr<const VocabularyTrie> trie() {
    std::call_once(trie_made_, [this] { trie_ = make_vocabulary_trie(*parts_.tokenizer); });
    return trie_;
  }

  ChatServiceParts parts_;
  SamplingParams direct_sampling_;
  ReplyMemory memory_;
  PromptWriter prompts_;
  std::once_flag trie_made_;
  std::shared_ptr<const VocabularyTrie> trie_;
  std::unique_ptr<Scheduler> scheduler_;  // last: its thread uses the others
};

}  // namespace

Result<std::unique_ptr<ChatService>> make_chat_service(const ChatServiceParts& parts, const SchedulerOptions& options,
                                                       const StoreOptions& store) {
  std::unique_ptr<SnapshotStore> opened;
  std::string memory_file;
  if (!store.directory.empty()) {
    Result<std::unique_ptr<SnapshotStore>> result = SnapshotStore::open(store);
    if (result) {
      opened = std::move(result).value();
      memory_file = opened->directory() + "/replies";
    } else if (store.warn) {
      store.warn(result.error().message() + "; sessions will not outlive this process");
    }
  }
  LILY_TRY(std::unique_ptr<Scheduler> scheduler,
           Scheduler::create(*parts.backend, *parts.tokenizer, options, std::move(opened)));
  return std::unique_ptr<ChatService>(std::make_unique<Service>(parts, std::move(scheduler), memory_file));
}

}  // namespace lily
