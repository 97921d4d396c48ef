// How far a backend is from float32 on the bundled model.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <memory>

#include "backend/backend.h"
#include "runtime/generate.h"
#include "support/compare.h"
#include "text/chat.h"

namespace lily::test {

inline std::vector<float> all_logits(Backend& backend, std::span<const int32_t> ids) {
  std::vector<float> logits(ids.size() * backend.config().vocab_size);
  const auto state = backend.make_state(static_cast<int64_t>(ids.size())).value();
  EXPECT_TRUE(backend.prefill(*state, ids, WantLogits::all, logits));
  return logits;
}

// Sum of -log p(next token) over the sequence.
inline double negative_log_likelihood(std::span<const float> logits, std::span<const int32_t> ids, size_t vocab) {
  double sum = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const std::span<const float> row = logits.subspan(i * vocab, vocab);
    double total = 0;
    for (const float logit : row) total += std::exp(double{logit} - row[ids[i + 1]]);
    sum += std::log(total);
  }
  return sum;
}

// Chats with the tiny model: what a user says, and what the float32 path answers.
inline std::vector<std::vector<int32_t>> chats(Backend& exact, const Tokenizer& tokenizer) {
  std::vector<std::vector<int32_t>> all;
  for (const char* text : {"What is a lighthouse?",
                           "What does \"harbour\" mean?",
                           "Define the word violin.",
                           "What is a glacier?",
                           "My name is Ada and I live in Turin. Where do I live?",
                           "What is 17 plus 25?",
                           "What is 81 minus 46?",
                           "What is a compass?",
                           "Tell me what an orchard is.",
                           "I have a dog called Rex. What is my dog called?",
                           "What is the meaning of courage?",
                           "What is a bridge?",
                           "Hello!",
                           "What is 9 times 8?",
                           "What is a teacher?",
                           "What does to wander mean?",
                           "What is a kettle?",
                           "What is granite?",
                           "What is an owl?",
                           "What is winter?"}) {
    for (const bool think : {false, true}) {
      const std::vector<Message> messages = {{.role = Role::user, .content = text}};
      std::vector<int32_t> ids = tokenizer.encode(render_chat(messages, {.enable_thinking = think}).value());
      Session session = Session::create(exact, 512).value();
      GenerateOptions options;
      options.reply.sampling.temperature = 0;
      options.reply.max_tokens = 60;
      options.reply.end_tokens = exact.config().eos_token_ids;
      const Reply reply = generate(session, &tokenizer, ids, options).value();
      ids.insert(ids.end(), reply.tokens.begin(), reply.tokens.end());
      all.push_back(std::move(ids));
    }
  }
  return all;
}

// The bars: the same token at 99 % of all positions, the same perplexity within 0.1 %.
inline void expect_tiny_model_faithful(Backend& fast, const std::shared_ptr<const Checkpoint>& checkpoint) {
  const Tokenizer tokenizer = Tokenizer::load(checkpoint->directory() + "/tokenizer.json").value();
  const auto exact = Backend::load("cpu", checkpoint, {.exact = true}).value();
  const size_t vocab = exact->config().vocab_size;
  Agreement top1;
  double exact_sum = 0, fast_sum = 0;
  for (const std::vector<int32_t>& ids : chats(*exact, tokenizer)) {
    const std::vector<float> want = all_logits(*exact, ids), got = all_logits(fast, ids);
    const Agreement here = top1_agreement(got, want, vocab, -1.0f);
    top1.positions += here.positions;
    top1.equal += here.equal;
    exact_sum += negative_log_likelihood(want, ids, vocab);
    fast_sum += negative_log_likelihood(got, ids, vocab);
  }
  const auto positions = static_cast<double>(top1.positions);
  const double ratio = std::exp((fast_sum - exact_sum) / positions);
  std::cout << "tiny: same top id at " << top1.equal << " of " << top1.positions << " positions, perplexity "
            << std::exp(exact_sum / positions) << " in float32, times " << ratio << " here\n";
  EXPECT_GT(top1.positions, 1000);
  EXPECT_GE(static_cast<double>(top1.equal), 0.99 * positions);
  EXPECT_NEAR(ratio, 1, 1e-3);
}

inline std::shared_ptr<const Checkpoint> open_bundled_model() {
  return std::make_shared<const Checkpoint>(Checkpoint::open(std::string(LILY_SOURCE_DIR) + "/models/tiny").value());
}

}  // namespace lily::test
