// A service that only answers questions about itself.
#pragma once

#include <cstdlib>
#include <string>

#include "runtime/chat_service.h"

namespace lily::test {

class SilentService : public ChatService {
 public:
  Started start(const ChatRequest&) override { return ServiceError{}; }
  Started start(const CompletionRequest&) override { return ServiceError{}; }
  Result<int64_t> count_tokens(const ChatRequest&) override { return int64_t{0}; }
  const SamplingParams& default_sampling(bool thinking) const override { return thinking ? thinking_ : plain_; }
  const Tokenizer& tokenizer() const override { std::abort(); }
  const std::string& model_name() const override { return name_; }
  int64_t context() const override { return 4096; }
  SchedulerStats stats() const override { return {}; }

 private:
  SamplingParams thinking_{.temperature = 0.6f, .top_k = 20, .top_p = 0.95f};
  SamplingParams plain_{.temperature = 0.7f, .top_k = 20, .top_p = 0.8f};
  std::string name_ = "tiny";
};

}  // namespace lily::test
