#include "cli/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace lily::cli {
namespace {

using nlohmann::ordered_json;

// Four digits, as much as such a measurement tells: "1801 MB", "62.31 GFLOP/s".
std::string amount(double value, const char* unit) {
  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t i = 0;
  for (; value >= 2000 && i + 1 < std::size(prefixes); ++i) value /= 1000;
  const int decimals = value >= 1000 ? 0 : value >= 100 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, decimals, prefixes[i], unit);
}

std::string rate(double tokens_per_second) {
  return fmt::format("{:.{}f}", tokens_per_second, tokens_per_second >= 100 ? 1 : 2);
}

template <class Row>
std::string label(const Row& row) {
  if (row.kind == BenchKind::prefill) return fmt::format("prefill {}", row.tokens);
  return fmt::format("decode {} at {}", row.tokens, row.depth);
}

int64_t stored_bytes(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors()) bytes += static_cast<int64_t>(tensor.bytes);
  return bytes;
}

TokenCost cost_of_token(const Engine& engine) {
  return token_cost(sizes_by_part(engine.checkpoint->tensors(), engine.config()), engine.config());
}

}  // namespace

BenchReport::BenchReport(const Engine& engine, const Peak& peak) : peak_(peak), cost_(cost_of_token(engine)) {
  const int64_t bytes = stored_bytes(*engine.checkpoint);
  title_ = fmt::format("{} · {} layers · {} on disk · {}", engine.name, engine.config().num_layers(),
                       amount(static_cast<double>(bytes), "B"), engine.backend->describe());
  json_ = {{"machine",
            {{"read_bytes_per_second", peak.bytes_per_second},
             {"flops_per_second", peak.flops_per_second},
             {"arithmetic", peak.arithmetic}}},
           {"model",
            {{"name", engine.name},
             {"layers", engine.config().num_layers()},
             {"parameters", engine.parameters},
             {"bytes", bytes}}},
           {"backend", engine.backend->describe()},
           {"rows", ordered_json::array()}};
}

std::string BenchReport::header() const {
  std::string text = title_ + "\n";
  text += fmt::format("this machine, measured: reads {} from memory; {} of {}\n", amount(peak_.bytes_per_second, "B/s"),
                      amount(peak_.flops_per_second, "FLOP/s"), peak_.arithmetic);
  text +=
      "share: decode's of the memory (caches are faster), prefill's of that arithmetic (other units may be faster)\n\n";
  text += fmt::format("{:<20}{:>10}{:>22}{:>15}{:>17}{:>9}", "", "tokens/s", "min - max", "per token", "rate", "share");
  return text;
}

// Both costs grow by the same amount with every position, so their mean is that of the first and the last token.
BenchReport::Cost BenchReport::cost_of(const BenchRow& row) const {
  if (row.kind == BenchKind::prefill) {
    return {.bytes = 0, .flops = static_cast<double>(cost_.prompt_flops(row.tokens)) / static_cast<double>(row.tokens)};
  }
  const int64_t last = row.depth + row.tokens - 1;
  const auto mean = [](int64_t a, int64_t b) { return (static_cast<double>(a) + static_cast<double>(b)) / 2; };
  return {.bytes = mean(cost_.bytes_at(row.depth), cost_.bytes_at(last)),
          .flops = mean(cost_.flops_at(row.depth + 1), cost_.flops_at(last + 1))};
}

std::string BenchReport::line(const BenchRow& row) const {
  const Cost cost = cost_of(row);
  const bool prefill = row.kind == BenchKind::prefill;
  const double per_token = prefill ? cost.flops : cost.bytes;
  const double per_second = per_token * row.median();
  const double peak = prefill ? peak_.flops_per_second : peak_.bytes_per_second;
  return fmt::format("{:<20}{:>10}{:>22}{:>15}{:>17}{:>7.1f} %", label(row), rate(row.median()),
                     rate(row.min()) + " - " + rate(row.max()), amount(per_token, prefill ? "FLOP" : "B"),
                     amount(per_second, prefill ? "FLOP/s" : "B/s"), 100 * per_second / peak);
}

void BenchReport::add(const BenchRow& row) {
  const Cost cost = cost_of(row);
  const bool prefill = row.kind == BenchKind::prefill;
  const auto of_bytes = [&](double value) { return prefill ? ordered_json() : ordered_json(value); };
  const double bytes_per_second = cost.bytes * row.median(), flops_per_second = cost.flops * row.median();
  ordered_json object = {{"kind", prefill ? "prefill" : "decode"}};
  object[prefill ? "length" : "depth"] = prefill ? row.tokens : row.depth;
  object["tokens"] = row.tokens;
  object["tokens_per_second"] = {
      {"median", row.median()}, {"min", row.min()}, {"max", row.max()}, {"repetitions", row.rates}};
  object["bytes_per_token"] = of_bytes(cost.bytes);
  object["flops_per_token"] = cost.flops;
  object["bytes_per_second"] = of_bytes(bytes_per_second);
  object["flops_per_second"] = flops_per_second;
  object["share_of_read_bandwidth"] = of_bytes(bytes_per_second / peak_.bytes_per_second);
  object["share_of_flops_peak"] = flops_per_second / peak_.flops_per_second;
  json_["rows"].push_back(std::move(object));
}

std::string BenchReport::ablation_header() const {
  return title_ + "\nfull engine beside one without each mechanism, in turn: median ratio of pairs\n\n" +
         fmt::format("{:<22}{:<20}{:>12}{:>12}{:>9}{:>16}  {}", "", "", "full t/s", "without", "ratio", "min - max",
                     "temporaries: full, without");
}

std::string BenchReport::line(const AblationRow& row) const {
  const std::string start = fmt::format("{:<22}{:<20}", row.mechanism, label(row));
  if (!row.skipped.empty()) return start + "skipped: " + row.skipped;
  const std::vector<double> ratios = row.ratios();
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return start + fmt::format("{:>12}{:>12}{:>9.3f}{:>16}  {}, {}", rate(median(row.full)), rate(median(row.without)),
                             median(ratios), fmt::format("{:.3f} - {:.3f}", *least, *most),
                             amount(static_cast<double>(row.full_bytes), "B"),
                             amount(static_cast<double>(row.without_bytes), "B"));
}

void BenchReport::add(const AblationRow& row) {
  const bool prefill = row.kind == BenchKind::prefill;
  ordered_json object = {{"mechanism", row.mechanism}, {"kind", prefill ? "prefill" : "decode"}};
  object[prefill ? "length" : "depth"] = prefill ? row.tokens : row.depth;
  object["tokens"] = row.tokens;
  if (!row.skipped.empty()) {
    object["skipped"] = row.skipped;
  } else {
    const std::vector<double> ratios = row.ratios();
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    object["ratio"] = {{"median", median(ratios)}, {"min", *least}, {"max", *most}, {"pairs", ratios}};
    object["tokens_per_second"] = {{"full", row.full}, {"without", row.without}};
    object["temporary_bytes"] = {{"full", row.full_bytes}, {"without", row.without_bytes}};
  }
  json_["ablation"].push_back(std::move(object));
}

}  // namespace lily::cli
