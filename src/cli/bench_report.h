// What `lily bench` says of its rows: a table for people, an object for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/benchmark.h"
#include "cli/engine.h"
#include "model/accounting.h"

namespace lily::cli {

// The cost of a token is computed from the model's shapes, so a backend that moves more than it must has a smaller share.
class BenchReport {
 public:
  BenchReport(const Engine& engine, const Peak& peak);

  std::string header() const;
  std::string line(const BenchRow& row) const;
  void add(const BenchRow& row);

  std::string ablation_header() const;
  std::string line(const AblationRow& row) const;
  void add(const AblationRow& row);

  // Costs are of one token, the mean over the row's; null where they bound nothing.
  nlohmann::ordered_json json() const { return json_; }

 private:
  struct Cost {
    double bytes;  // of one decoded token; 0 for prefill, which shares what it reads among its tokens
    double flops;
  };
  Cost cost_of(const BenchRow& row) const;

  Peak peak_;
  TokenCost cost_;
  std::string title_;
  nlohmann::ordered_json json_;
};

}  // namespace lily::cli
