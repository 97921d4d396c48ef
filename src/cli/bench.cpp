// lily bench: how fast a model runs here, beside what this machine could do.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

#include "base/output_file.h"
#include "cli/bench_report.h"
#include "cli/benchmark.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/options.h"
#include "cli/output_path.h"

namespace lily::cli {
namespace {

struct Settings {
  ModelOptions model;
  std::optional<std::string> prompts, depths;  // "128,512"
  std::optional<int64_t> decode;
  int repetitions = 3;
  std::string only;
  std::string ablate;  // "all" or names, separated by commas; empty: no ablation
  std::string json;    // "-": standard output, without the table
};

constexpr int64_t default_prompt = 512, default_depth = 4096, default_decode = 32;

// "128,512" in ascending order, each once.
Result<std::vector<int64_t>> parse_lengths(std::string_view text, const char* option, int64_t least) {
  std::vector<int64_t> lengths;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const char* last = text.data() + end;
    int64_t length = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, last, length);
    if (error != std::errc{} || stop != last || length < least) {
      return Error{.where = option,
                   .what = "bad number of tokens",
                   .expected = "numbers from " + std::to_string(least) + ", separated by commas",
                   .got = "\"" + std::string(text.substr(at, std::min<size_t>(end - at, 40))) + "\""};
    }
    lengths.push_back(length);
    at = end + 1;
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

Result<void> check_length(const char* option, int64_t length, int64_t limit, const std::string& why) {
  if (length <= limit) return {};
  return Error{.where = option,
               .what = "more tokens than the model's context",
               .expected = "at most " + std::to_string(std::max<int64_t>(limit, 0)) + why,
               .got = std::to_string(length)};
}

// What was given must fit the context; what was not is made to.
Result<BenchPlan> make_plan(const Settings& settings, std::vector<int64_t> prompts, std::vector<int64_t> depths,
                            const Engine& engine) {
  const int64_t context = engine.config().max_position_embeddings;
  BenchPlan plan{.repetitions = settings.repetitions, .chunk = engine.chunk};
  if (!prompts.empty()) LILY_CHECK(check_length("--prefill", prompts.back(), context, ""));
  if (prompts.empty()) prompts = {std::min(default_prompt, context)};
  const int64_t deepest = depths.empty() ? 0 : depths.back();
  plan.decode = settings.decode.value_or(std::clamp<int64_t>(context - deepest, 1, default_decode));
  if (plan.decode < 1) {
    return Error{.where = "--decode",
                 .what = "bad number of tokens",
                 .expected = "1 or more",
                 .got = std::to_string(plan.decode)};
  }
  LILY_CHECK(check_length("--decode", plan.decode, context, ""));
  const int64_t limit = context - plan.decode;
  LILY_CHECK(check_length("--depth", deepest, limit, " with " + std::to_string(plan.decode) + " to decode"));
  if (depths.empty()) depths = {0, std::min(default_depth, limit)};
  if (depths.front() == depths.back()) depths.resize(1);
  if (settings.only != "decode") plan.prompts = std::move(prompts);
  if (settings.only != "prefill") plan.depths = std::move(depths);
  return plan;
}

Result<std::vector<Mechanism>> chosen_mechanisms(const Backend& backend, const std::string& wanted) {
  const std::vector<Mechanism> all = backend.mechanisms();
  if (wanted == "all" && !all.empty()) return all;
  std::string known = all.empty() ? "a GPU backend: " + backend.describe() + " has none to switch off" : "all";
  for (const Mechanism& mechanism : all) known += ", " + mechanism.name;
  std::vector<Mechanism> chosen;
  for (size_t at = 0; at <= wanted.size();) {
    const size_t end = std::min(wanted.find(',', at), wanted.size());
    const std::string name = wanted.substr(at, end - at);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Mechanism& each) { return each.name == name; });
    if (found == all.end()) return Error{.where = "--ablate", .what = "unknown", .expected = known, .got = name};
    chosen.push_back(*found);
    at = end + 1;
  }
  return chosen;
}

// The table as it comes, unless JSON takes the standard output.
Result<nlohmann::ordered_json> measure(Engine& engine, const BenchPlan& plan, const Settings& settings) {
  LILY_TRY(const Peak peak, engine.backend->measure_peak());
  BenchReport report(engine, peak);
  const bool table = settings.json != "-";
  const auto print = [&](const std::string& line) {
    if (table) std::puts(line.c_str());
    std::fflush(stdout);
  };
  if (!settings.ablate.empty()) {
    LILY_TRY(const std::vector<Mechanism> mechanisms, chosen_mechanisms(*engine.backend, settings.ablate));
    print(report.ablation_header());
    LILY_CHECK(run_ablation(*engine.backend, plan, mechanisms, [&](const AblationRow& row) {
      report.add(row);
      print(report.line(row));
    }));
    return report.json();
  }
  print(report.header());
  LILY_CHECK(run_benchmark(*engine.backend, plan, [&](const BenchRow& row) {
    report.add(row);
    print(report.line(row));
  }));
  return report.json();
}

Result<void> measure_to_file(Engine& engine, const BenchPlan& plan, const Settings& settings) {
  LILY_CHECK(check_output(settings.json, *engine.checkpoint, {engine.checkpoint->directory() + "/config.json"}));
  return replace_file(settings.json, [&](const std::string& path) -> Result<void> {
    // Made before the work, so that a path that cannot be written is known at once.
    LILY_TRY(const OutputFile file, OutputFile::create(path));
    LILY_TRY(const nlohmann::ordered_json object, measure(engine, plan, settings));
    const std::string text = object.dump(2) + "\n";
    LILY_CHECK(file.write_at(0, std::as_bytes(std::span(text))));
    return file.sync();
  });
}

Result<void> run(const Settings& settings) {
  std::vector<int64_t> prompts, depths;
  if (settings.prompts) {
    LILY_TRY(prompts, parse_lengths(*settings.prompts, "--prefill", 1));
  }
  if (settings.depths) {
    LILY_TRY(depths, parse_lengths(*settings.depths, "--depth", 0));
  }
  LILY_TRY(Engine engine, load_engine(settings.model, NeedTokenizer::no));
  LILY_TRY(const BenchPlan plan, make_plan(settings, std::move(prompts), std::move(depths), engine));
  if (!settings.json.empty() && settings.json != "-") return measure_to_file(engine, plan, settings);
  LILY_TRY(const nlohmann::ordered_json object, measure(engine, plan, settings));
  if (settings.json == "-") std::puts(object.dump(2).c_str());
  return {};
}

}  // namespace

Command bench_command(CLI::App& app) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* command = app.add_subcommand("bench", "Measure the speed of a model on this machine");
  add_model_options(*command, settings->model);
  command->add_option("--prefill", settings->prompts, "Lengths of prompts, separated by commas (default: 512)")
      ->type_name("N,...");
  command->add_option("--decode", settings->decode, "Tokens decoded at each depth (default: 32)")
      ->check(whole_number())
      ->type_name("N");
  command->add_option("--depth", settings->depths, "Tokens before the decoded ones (default: 0,4096)")
      ->type_name("N,...");
  command->add_option("-r,--repetitions", settings->repetitions, "Timed repetitions of each, after an untimed one")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--only", settings->only, "Measure only prefill or only decode")
      ->check(CLI::IsMember({"prefill", "decode"}));
  command
      ->add_option("--ablate", settings->ablate,
                   "Measure what the engine's mechanisms are worth instead, each off in turn: names, or all")
      ->type_name("NAME,...");
  command->add_option("--json", settings->json, "Write one JSON object, too; -: to standard output, without the table")
      ->type_name("FILE");
  return {command, [settings] {
            const Result<void> result = run(*settings);
            return result ? 0 : report(result.error());
          }};
}

}  // namespace lily::cli
