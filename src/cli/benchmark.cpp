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
    if (!at_depth_ || state_->position() > depth) backend_.reset(*state_);  // deeper only after an error
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

Result<Benchmark> make_benchmark(Backend& backend, const BenchPlan& plan) {
  int64_t capacity = 1;
  for (const int64_t length : plan.prompts) capacity = std::max(capacity, length);
  for (const int64_t depth : plan.depths) capacity = std::max(capacity, depth + plan.decode);
  LILY_TRY(std::unique_ptr<State> state, backend.make_state(capacity));
  return Benchmark(backend, plan, std::move(state));
}

// Pairs of measurements of one kind after another.
class Ablation {
 public:
  Ablation(Backend& backend, const BenchPlan& plan) : backend_(backend), repetitions_(plan.repetitions), plan_(plan) {
    plan_.repetitions = 1;
  }

  Result<void> prefill(const Mechanism& mechanism, int64_t length) {
    return pairs({.mechanism = mechanism.name, .kind = BenchKind::prefill, .depth = 0, .tokens = length});
  }
  Result<void> decode(const Mechanism& mechanism, int64_t depth) {
    return pairs({.mechanism = mechanism.name, .kind = BenchKind::decode, .depth = depth, .tokens = plan_.decode});
  }

  Result<void> run(const std::vector<Mechanism>& mechanisms, const std::function<void(const AblationRow&)>& on_row) {
    LILY_TRY(Benchmark benchmark, make_benchmark(backend_, plan_));
    benchmark_ = &benchmark;
    on_row_ = &on_row;
    for (const Mechanism& mechanism : mechanisms) {
      int64_t measured = 0;
      for (int64_t length : plan_.prompts) {
        if (!mechanism.of_prefill) break;
        if (mechanism.most_tokens > 0) length = std::min(length, mechanism.most_tokens);
        if (length != measured) LILY_CHECK(prefill(mechanism, length));
        measured = length;
      }
    }
    for (const int64_t depth : plan_.depths) {
      for (const Mechanism& mechanism : mechanisms) {
        if (mechanism.of_decode) LILY_CHECK(decode(mechanism, depth));
      }
    }
    return {};
  }

 private:
  Result<void> pairs(AblationRow row) {
    for (int i = 0; i < repetitions_ && row.skipped.empty(); ++i) {
      for (const bool full : {i % 2 == 0, i % 2 != 0}) {
        const Result<double> rate = once(full ? "" : row.mechanism, row);
        if (rate) {
          (full ? row.full : row.without).push_back(*rate);
          (full ? row.full_bytes : row.without_bytes) = backend_.temporary_bytes();
          continue;
        }
        LILY_CHECK(backend_.without(""));
        if (full) return rate.error();
        row.skipped = rate.error().message();  // such as memory that the device does not have
        break;
      }
    }
    (*on_row_)(row);
    return backend_.without("");
  }

  Result<double> once(const std::string& mechanism, const AblationRow& row) {
    LILY_CHECK(backend_.without(mechanism));
    plan_.chunk = backend_.chunk();
    LILY_TRY(const BenchRow measured,
             row.kind == BenchKind::prefill ? benchmark_->prefill(row.tokens) : benchmark_->decode(row.depth));
    return measured.rates[0];
  }

  Backend& backend_;
  int repetitions_;
  BenchPlan plan_;
  Benchmark* benchmark_ = nullptr;
  const std::function<void(const AblationRow&)>* on_row_ = nullptr;
};

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double BenchRow::median() const { return cli::median(rates); }

double BenchRow::min() const { return *std::min_element(rates.begin(), rates.end()); }

double BenchRow::max() const { return *std::max_element(rates.begin(), rates.end()); }

Result<void> run_benchmark(Backend& backend, const BenchPlan& plan,
                           const std::function<void(const BenchRow&)>& on_row) {
  LILY_TRY(Benchmark benchmark, make_benchmark(backend, plan));
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

std::vector<double> AblationRow::ratios() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(full.size(), without.size()); ++i) ratios.push_back(full[i] / without[i]);
  return ratios;
}

Result<void> run_ablation(Backend& backend, const BenchPlan& plan, const std::vector<Mechanism>& mechanisms,
                          const std::function<void(const AblationRow&)>& on_row) {
  return Ablation(backend, plan).run(mechanisms, on_row);
}

}  // namespace lily::cli
