// Logits -> the next token.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/token_constraint.h"

namespace lily {

// Applied in this order, that of transformers: logit bias, repetition, frequency and presence penalty, temperature, top-k,
// top-p, min-p. Each cut sees the distribution that the one before it left, renormalised. The penalties look at the reply's
// own tokens only, never at the prompt: names from a question stay sayable.
struct SamplingParams {
  float temperature = 1.0f;                       // 0: greedy
  int top_k = 20;                                 // the k likeliest; 0: all
  float top_p = 0.95f;                            // the likeliest whose probabilities reach p; 1: all
  float min_p = 0.0f;                             // at least this fraction of the likeliest's probability; 0: all
  float repetition_penalty = 1.0f;                // seen tokens: positive logits divided by it, others multiplied
  float presence_penalty = 0.0f;                  // subtracted from the logit of a seen token
  float frequency_penalty = 0.0f;                 // subtracted once for every time that a token was seen
  std::unordered_map<int32_t, float> logit_bias;  // id -> what is added to its logit
  uint64_t seed = 0;
};

// Every number finite and in its range; the error names the parameter.
Result<void> check(const SamplingParams& params);

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  double uniform();  // [0, 1)

 private:
  uint64_t state_;
};

// Samples one reply. Equal logits are ordered by id, so the outcome depends on nothing but parameters and logits.
class Sampler {
 public:
  // `tokens`: ids from there on are never sampled (the rows of a padded vocabulary).
  Sampler(const SamplingParams& params, int32_t tokens);

  // `logits` [vocab] are used as scratch. The sampled token counts as seen from then on. `allowed`: the only ids that may be
  // sampled; null: all.
  Result<int32_t> sample(std::span<float> logits, const TokenSet* allowed = nullptr);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };

  void penalize(std::span<float> logits) const;
  int32_t pick(std::span<const float> logits);
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  int32_t draw();
  void sort_first(size_t count);
  double weight(const Candidate& candidate) const;  // proportional to its probability
  double total_weight() const;

  SamplingParams params_;
  size_t tokens_;
  Random random_;
  std::unordered_map<int32_t, int> seen_;
  float largest_ = 0;
  std::vector<Candidate> candidates_;
  size_t sorted_ = 0;  // so many candidates stand in order at the front; none behind them is larger
};

}  // namespace lily
