#include "cli/benchmark.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "cli/progress.h"

namespace lily::cli {
namespace {

std::vector<int32_t> random_ids(int64_t count, int32_t vocab) {
  std::mt19937 random(20);  // any seed: one that stays makes runs comparable
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocab));
  return ids;
}

// The state holds a prefix of one sequence of ids at any time, so a position tells all that it holds.
class Benchmark {
 public:
  Benchmark(Backend& backend, const BenchPlan& plan, std::unique_ptr<State> state)
      : backend_(backend),
        plan_(plan),
        state_(std::move(state)),
        ids_(random_ids(state_->max_tokens(), backend.config().vocab_size)),
        logits_(static_cast<size_t>(backend.config().vocab_size)) {}

  Result<BenchRow> prefill(int64_t length) {
    ProgressBar bar("prefill " + std::to_string(length), (plan_.repetitions + 1) * length, ProgressUnit::tokens);
    const auto begin = [&] { backend_.reset(*state_); };
    LILY_TRY(std::vector<double> rates, time(length, begin, [&] { return fill(length, WantLogits::last, bar); }));
    return BenchRow{.kind = BenchKind::prefill, .depth = 0, .tokens = length, .rates = std::move(rates)};
  }

  // Depths must come in ascending order: the state goes on from the one before.
  Result<BenchRow> decode(int64_t depth) {
    if (!at_depth_) backend_.reset(*state_);
    {
      ProgressBar bar("filling to " + std::to_string(depth), depth - state_->position(), ProgressUnit::tokens);
      LILY_CHECK(fill(depth, WantLogits::none, bar));
    }
    at_depth_ = true;
    const std::unique_ptr<Snapshot> snapshot = backend_.snapshot(*state_);
    if (!snapshot) return Error{.where = "bench", .what = "no memory for a snapshot", .exit_code = 1};
    ProgressBar bar("decode at " + std::to_string(depth), (plan_.repetitions + 1) * plan_.decode, ProgressUnit::tokens);
    const auto begin = [&] { backend_.restore(*state_, *snapshot); };
    LILY_TRY(std::vector<double> rates, time(plan_.decode, begin, [&] { return steps(bar); }));
    begin();
    return BenchRow{.kind = BenchKind::decode, .depth = depth, .tokens = plan_.decode, .rates = std::move(rates)};
  }

 private:
  // Tokens/s of every repetition but the first one, which warms up; `begin` is not timed.
  template <class Begin, class Work>
  Result<std::vector<double>> time(int64_t tokens, const Begin& begin, const Work& work) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> rates;
    done_ = 0;
    for (int i = 0; i <= plan_.repetitions; ++i) {
      begin();
      const auto start = Clock::now();
      LILY_CHECK(work());
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (i > 0) rates.push_back(static_cast<double>(tokens) / std::max(seconds, 1e-9));
    }
    return rates;
  }

  Result<void> fill(int64_t end, WantLogits want, ProgressBar& bar) {
    while (state_->position() < end) {
      const int64_t first = state_->position(), count = std::min(plan_.chunk, end - first);
      const bool last = want == WantLogits::last && first + count == end;
      LILY_CHECK(backend_.prefill(*state_, std::span(ids_).subspan(first, count), last ? want : WantLogits::none,
                                  last ? std::span(logits_) : std::span<float>()));
      bar.update(done_ += count);
    }
    return {};
  }

  Result<void> steps(ProgressBar& bar) {
    if (backend_.samples()) {  // as a reply is generated there
      int64_t left = plan_.decode;
      const DeviceSampling greedy{.tokens = static_cast<uint32_t>(backend_.config().vocab_size)};
      return backend_.decode_ahead(*state_, ids_[state_->position()], greedy, [&](int32_t) {
        bar.update(++done_);
        return --left > 0;
      });
    }
    for (int64_t i = 0; i < plan_.decode; ++i) {
      DecodeItem item{.state = state_.get(), .token = ids_[state_->position()], .logits = logits_};
      LILY_CHECK(backend_.decode({&item, 1}));
      bar.update(++done_);
    }
    return {};
  }

  Backend& backend_;
  const BenchPlan& plan_;
  std::unique_ptr<State> state_;
  std::vector<int32_t> ids_;   // [max_tokens]
  std::vector<float> logits_;  // [vocab]
  int64_t done_ = 0;           // tokens of this row, for its bar
  bool at_depth_ = false;
};

}  // namespace

double BenchRow::median() const {
  std::vector<double> sorted = rates;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double BenchRow::min() const { return *std::min_element(rates.begin(), rates.end()); }

double BenchRow::max() const { return *std::max_element(rates.begin(), rates.end()); }

Result<void> run_benchmark(Backend& backend, const BenchPlan& plan,
                           const std::function<void(const BenchRow&)>& on_row) {
  int64_t capacity = 1;
  for (const int64_t length : plan.prompts) capacity = std::max(capacity, length);
  for (const int64_t depth : plan.depths) capacity = std::max(capacity, depth + plan.decode);
  LILY_TRY(std::unique_ptr<State> state, backend.make_state(capacity));
  Benchmark benchmark(backend, plan, std::move(state));
  for (const int64_t length : plan.prompts) {
    LILY_TRY(const BenchRow row, benchmark.prefill(length));
    on_row(row);
  }
  for (const int64_t depth : plan.depths) {
    LILY_TRY(const BenchRow row, benchmark.decode(depth));
    on_row(row);
  }
  return {};
}

}  // namespace lily::cli
