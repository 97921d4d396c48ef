// Times prefill and decode of any backend.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/result.h"

namespace lily::cli {

enum class BenchKind { prefill, decode };

struct BenchPlan {
  std::vector<int64_t> prompts;  // lengths to prefill into an empty state
  std::vector<int64_t> depths;   // tokens that the state holds before decoding; ascending
  int64_t decode = 32;           // tokens decoded at each depth
  int repetitions = 3;           // timed ones; one more before them is not
  int64_t chunk = 512;           // tokens of one prefill call
};

struct BenchRow {
  BenchKind kind;
  int64_t depth;              // tokens in the state at the start
  int64_t tokens;             // of one repetition
  std::vector<double> rates;  // tokens/s of every repetition, in order

  double median() const;
  double min() const;
  double max() const;
};

// Random ids with a fixed seed, the same in every repetition: routing varies from token to token as in use, and the
// repetitions differ only by the machine. A depth is filled once and returned to by its snapshot. The lengths must fit
// the model's context.
Result<void> run_benchmark(Backend& backend, const BenchPlan& plan, const std::function<void(const BenchRow&)>& on_row);

// The engine with one mechanism off, beside all of it, in pairs.
struct AblationRow {
  std::string mechanism;
  BenchKind kind;
  int64_t depth;                             // tokens in the state at the start
  int64_t tokens;                            // of one repetition
  std::vector<double> full, without;         // tokens/s; the i-th of both are a pair
  size_t full_bytes = 0, without_bytes = 0;  // of temporaries
  std::string skipped;                       // why there is no measurement

  std::vector<double> ratios() const;  // full / without, of every pair
};

double median(std::vector<double> values);  // not empty

// Every mechanism at each of the plan's lengths (prefill) or depths (decode). Of plan.repetitions pairs every other one starts
// with the full engine; each measurement follows an untimed one of the same kind, which makes recordings and memory anew.
Result<void> run_ablation(Backend& backend, const BenchPlan& plan, const std::vector<Mechanism>& mechanisms,
                          const std::function<void(const AblationRow&)>& on_row);

}  // namespace lily::cli
