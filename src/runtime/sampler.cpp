#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lily {
namespace {

Result<void> check_range(const char* name, double value, bool good, const char* expected) {
  if (std::isfinite(value) && good) return {};
  return Error{.where = name, .what = "out of range", .expected = expected, .got = fmt::format("{:g}", value)};
}

bool all_finite(std::span<const float> values) {
  // No early exit: the loop vectorises, and it nearly always runs to the end.
  bool finite = true;
  for (const float value : values) finite &= std::abs(value) <= std::numeric_limits<float>::max();
  return finite;
}

float largest_of(std::span<const float> values) {
  // Eight independent maxima: one chain of comparisons would wait for its own latency.
  float best[8];
  std::fill(best, best + 8, values.front());
  size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) best[lane] = std::max(best[lane], values[i + lane]);
  }
  for (; i < values.size(); ++i) best[0] = std::max(best[0], values[i]);
  return *std::max_element(best, best + 8);
}

// A forbidden id has no probability. False: all are forbidden.
bool forbid_others(std::span<float> logits, const TokenSet& allowed) {
  bool some = false;
  for (size_t id = 0; id < logits.size(); ++id) {
    const bool good = allowed.has(static_cast<int32_t>(id));
    some |= good;
    if (!good) logits[id] = -std::numeric_limits<float>::infinity();
  }
  return some;
}

}  // namespace

Result<void> check(const SamplingParams& p) {
  LILY_CHECK(check_range("temperature", p.temperature, p.temperature >= 0, "0 or more"));
  LILY_CHECK(check_range("top_k", p.top_k, p.top_k >= 0, "0 or more"));
  LILY_CHECK(check_range("top_p", p.top_p, p.top_p > 0 && p.top_p <= 1, "more than 0, at most 1"));
  LILY_CHECK(check_range("min_p", p.min_p, p.min_p >= 0 && p.min_p <= 1, "0 to 1"));
  LILY_CHECK(check_range("repetition_penalty", p.repetition_penalty, p.repetition_penalty > 0, "more than 0"));
  LILY_CHECK(check_range("presence_penalty", p.presence_penalty, std::abs(p.presence_penalty) <= 2, "-2 to 2"));
  LILY_CHECK(check_range("frequency_penalty", p.frequency_penalty, std::abs(p.frequency_penalty) <= 2, "-2 to 2"));
  for (const auto& [id, bias] : p.logit_bias) {
    LILY_CHECK(check_range("logit_bias", bias, id >= 0, "finite numbers for ids of 0 or more"));
  }
  return {};
}

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

Sampler::Sampler(const SamplingParams& params, int32_t tokens)
    : params_(params), tokens_(static_cast<size_t>(tokens)), random_(params.seed) {}

Result<int32_t> Sampler::sample(std::span<float> logits, const TokenSet* allowed) {
  logits = logits.first(std::min(logits.size(), tokens_));
  penalize(logits);
  if (logits.empty() || !all_finite(logits)) {
    return Error{.where = "sampler", .what = "logits are not finite", .exit_code = 1};
  }
  if (allowed && !forbid_others(logits, *allowed)) {
    return Error{.where = "sampler", .what = "no token fits the constraint", .exit_code = 1};
  }
  const int32_t token = pick(logits);
  ++seen_[token];
  return token;
}

void Sampler::penalize(std::span<float> logits) const {
  for (const auto& [id, bias] : params_.logit_bias) {
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] += bias;
  }
  for (const auto& [id, count] : seen_) {
    float& logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    logit -= params_.frequency_penalty * static_cast<float>(count) + params_.presence_penalty;
  }
}

int32_t Sampler::pick(std::span<const float> logits) {
  largest_ = largest_of(logits);
  if (params_.temperature == 0) {
    return static_cast<int32_t>(std::find(logits.begin(), logits.end(), largest_) - logits.begin());
  }
  sorted_ = 0;
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -std::numeric_limits<float>::infinity())
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  }
  keep_top_k();
  keep_top_p();
  keep_min_p();
  return draw();
}

void Sampler::keep_top_k() {
  const size_t count = static_cast<size_t>(params_.top_k);
  if (count == 0 || count >= candidates_.size()) return;
  sort_first(count);
  candidates_.resize(count);
}

void Sampler::keep_top_p() {
  if (params_.top_p >= 1) return;
  const double wanted = params_.top_p * total_weight();
  double reached = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && reached < wanted) {
    if (kept == sorted_) sort_first(std::max<size_t>(64, 8 * sorted_));  // few are needed as a rule
    reached += weight(candidates_[kept++]);
  }
  candidates_.resize(kept);
}

void Sampler::keep_min_p() {
  if (params_.min_p <= 0) return;
  std::erase_if(candidates_, [&](const Candidate& candidate) { return weight(candidate) < params_.min_p; });
}

int32_t Sampler::draw() {
  double left = random_.uniform() * total_weight();
  for (const Candidate& candidate : candidates_) {
    left -= weight(candidate);
    if (left < 0) return candidate.id;
  }
  return candidates_.back().id;  // rounding left a crumb
}

void Sampler::sort_first(size_t count) {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  count = std::min(count, candidates_.size());
  const auto begin = candidates_.begin();
  std::partial_sort(begin + static_cast<ptrdiff_t>(sorted_), begin + static_cast<ptrdiff_t>(count), candidates_.end(),
                    likelier);
  sorted_ = count;
}

double Sampler::weight(const Candidate& candidate) const {
  return std::exp((static_cast<double>(candidate.logit) - largest_) / params_.temperature);
}

double Sampler::total_weight() const {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += weight(candidate);
  return total;
}

}  // namespace lily
