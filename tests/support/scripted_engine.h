// An engine whose model is a function from the user's last message to the reply.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cli/engine.h"
#include "support/byte_tokenizer.h"
#include "support/fake_backend.h"

namespace lily::test {

// The reply as template text: "a thought</think>\n\nan answer"; in a turn without thinking the thought is left out.
using Answer = std::function<std::string(const std::string& message)>;

inline std::unique_ptr<FakeBackend> scripted_backend(const Tokenizer& tokenizer, int64_t context, Answer answer) {
  const int32_t start = *tokenizer.added_token("<|im_start|>");
  const int32_t end = *tokenizer.added_token("<|im_end|>");
  auto script = [&tokenizer, answer = std::move(answer), start, end](const std::vector<int32_t>& history) {
    const auto last = std::find(history.rbegin(), history.rend(), start).base();  // behind the last <|im_start|>
    const std::string turn = tokenizer.decode({last, history.end()});
    const std::string open = "assistant\n<think>\n";
    const std::string direct = open + "\n</think>\n\n";
    const auto before = tokenizer.decode({history.begin(), last});
    const size_t message = before.rfind("<|im_start|>user\n") + std::string("<|im_start|>user\n").size();
    std::string reply = answer(before.substr(message, before.find("<|im_end|>", message) - message));
    const std::string& prefix = turn.starts_with(direct) ? direct : open;
    if (&prefix == &direct)
      reply.erase(0, reply.find("</think>\n\n") == reply.npos ? 0 : reply.find("</think>\n\n") + 10);
    const auto said = static_cast<size_t>(history.end() - last) - tokenizer.encode(prefix, true).size();
    const std::vector<int32_t> ids = tokenizer.encode(reply, true);
    return said < ids.size() ? ids[said] : end;
  };
  auto backend = std::make_unique<FakeBackend>(tokenizer.size(), context, std::move(script));
  backend->mutable_config().eos_token_ids = {end};
  return backend;
}

// Must not be moved after make: the script refers to its tokenizer.
struct ScriptedEngine {
  ScriptedEngine(Answer answer, int64_t context = 4096) {
    engine.name = "scripted";
    engine.parameters = 36'800'000;
    engine.tokenizer = byte_tokenizer();
    engine.sampling.temperature = 0;
    auto scripted = scripted_backend(*engine.tokenizer, context, std::move(answer));
    backend = scripted.get();
    engine.backend = std::move(scripted);
  }
  ScriptedEngine(const ScriptedEngine&) = delete;
  ScriptedEngine& operator=(const ScriptedEngine&) = delete;

  cli::Engine engine;
  FakeBackend* backend = nullptr;
};

}  // namespace lily::test
