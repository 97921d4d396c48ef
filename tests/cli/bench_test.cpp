// lily bench: the program on a small model, and what it asks of a backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/benchmark.h"
#include "model/accounting.h"
#include "support/fake_backend.h"
#include "support/run_lily.h"
#include "support/test_model.h"

namespace lily {
namespace {

using nlohmann::json;
using test::run_lily;
using test::TemporaryDirectory;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;
using testing::StartsWith;

// Without a tokenizer; context 512.
struct SmallModel {
  SmallModel() { test::TestModel(config).write(directory.path()); }

  test::ProgramRun bench(const std::string& arguments) const {
    return run_lily("bench -m " + directory.path() + " --threads 1 " + arguments);
  }

  ModelConfig config = test::small_config();
  TokenCost cost = token_cost(sizes_by_part(published_tensors(config), config), config);
  TemporaryDirectory directory;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void expect_consistent_rates(const json& row, size_t repetitions) {
  const json& rates = row["tokens_per_second"];
  ASSERT_EQ(rates["repetitions"].size(), repetitions);
  const auto all = rates["repetitions"].get<std::vector<double>>();
  EXPECT_EQ(rates["min"], *std::min_element(all.begin(), all.end()));
  EXPECT_EQ(rates["max"], *std::max_element(all.begin(), all.end()));
  EXPECT_GT(rates["min"], 0);
  EXPECT_LE(rates["min"], rates["median"]);
  EXPECT_LE(rates["median"], rates["max"]);
}

TEST(Bench, TableAndFileHaveTheSameRows) {
  const SmallModel model;
  const std::string file = model.directory / "bench.json";
  const auto run = model.bench("--prefill 20,3 --decode 4 --depth 40,0 -r 2 --json " + file);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  const std::vector<std::string> lines = lines_of(run.out);
  ASSERT_THAT(lines, SizeIs(9)) << run.out;
  EXPECT_THAT(lines[0], MatchesRegex(".* · 4 layers · [0-9.]+ [kM]?B on disk · cpu \\(.*\\)"));
  EXPECT_THAT(lines[1],
              MatchesRegex("this machine, measured: reads .*B/s .*; .*FLOP/s of float32 FMA \\(.*, 1 thread\\)"));
  const std::string numbers = " +[0-9.]+ +[0-9.]+ - [0-9.]+ +[0-9.]+ k";
  EXPECT_THAT(lines[5], MatchesRegex("prefill 3" + numbers + "FLOP +[0-9.]+ [MG]FLOP/s +[0-9.]+ %"));
  EXPECT_THAT(lines[6], StartsWith("prefill 20 "));
  EXPECT_THAT(lines[7], MatchesRegex("decode 4 at 0" + numbers + "B +[0-9.]+ [kMG]B/s +[0-9.]+ %"));
  EXPECT_THAT(lines[8], StartsWith("decode 4 at 40 "));

  const json object = json::parse(test::read_text(file));
  EXPECT_GT(object["machine"]["read_bytes_per_second"], 1e8);
  EXPECT_GT(object["machine"]["flops_per_second"], 1e8);
  EXPECT_EQ(object["model"]["layers"], 4);
  EXPECT_THAT(object["backend"].get<std::string>(), StartsWith("cpu ("));
  ASSERT_EQ(object["rows"].size(), 4u);
  for (const json& row : object["rows"]) {
    expect_consistent_rates(row, 2);
    const double rate = row["tokens_per_second"]["median"];
    EXPECT_DOUBLE_EQ(row["flops_per_second"], row["flops_per_token"].get<double>() * rate);
    EXPECT_DOUBLE_EQ(row["share_of_flops_peak"],
                     row["flops_per_second"].get<double>() / object["machine"]["flops_per_second"].get<double>());
  }
  const json& prompt = object["rows"][1];
  EXPECT_EQ(prompt["kind"], "prefill");
  EXPECT_EQ(prompt["length"], 20);
  EXPECT_DOUBLE_EQ(prompt["flops_per_token"], static_cast<double>(model.cost.prompt_flops(20)) / 20);
  EXPECT_TRUE(prompt["bytes_per_token"].is_null());
  const json& decode = object["rows"][3];
  EXPECT_EQ(decode["kind"], "decode");
  EXPECT_EQ(decode["depth"], 40);
  EXPECT_EQ(decode["tokens"], 4);
  double bytes = 0, flops = 0;
  for (int64_t position = 40; position < 44; ++position) {
    bytes += static_cast<double>(model.cost.bytes_at(position)) / 4;
    flops += static_cast<double>(model.cost.flops_at(position + 1)) / 4;
  }
  EXPECT_DOUBLE_EQ(decode["bytes_per_token"], bytes);
  EXPECT_DOUBLE_EQ(decode["flops_per_token"], flops);
  EXPECT_DOUBLE_EQ(decode["share_of_read_bandwidth"], bytes * decode["tokens_per_second"]["median"].get<double>() /
                                                          object["machine"]["read_bytes_per_second"].get<double>());
}

// 4096 and 32 tokens do not fit 512.
TEST(Bench, DefaultsFitTheContextAndJsonCanBeAllThereIs) {
  const SmallModel model;
  const auto run = model.bench("--only decode -r 1 --json -");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = json::parse(run.out);
  ASSERT_EQ(object["rows"].size(), 2u);
  EXPECT_EQ(object["rows"][0]["depth"], 0);
  EXPECT_EQ(object["rows"][1]["depth"], 480);
  EXPECT_EQ(object["rows"][1]["tokens"], 32);
}

TEST(Bench, BadArgumentsAreOneLine) {
  const SmallModel model;
  const auto error_of = [&](const std::string& arguments) {
    const auto run = model.bench(arguments);
    EXPECT_EQ(run.exit_code, 2) << arguments;
    EXPECT_EQ(run.out, "") << arguments;
    EXPECT_THAT(run.err, StartsWith("lily: ")) << arguments;
    EXPECT_THAT(lines_of(run.err), SizeIs(1)) << arguments;
    return run.err;
  };
  for (const char* bad : {"0", "-1", "x", "1,,2", "1,", ",1", "''", "1.5", "7x", "9223372036854775808", "'1 2'"}) {
    error_of(std::string("--prefill=") + bad);
  }
  EXPECT_EQ(error_of("--prefill 5,x7"),
            "lily: --prefill: bad number of tokens: expected numbers from 1, separated by commas, got \"x7\"\n");
  EXPECT_EQ(error_of("--prefill 5,513"),
            "lily: --prefill: more tokens than the model's context: expected at most 512, got 513\n");
  EXPECT_EQ(error_of("--depth 9,505 --decode 8"),
            "lily: --depth: more tokens than the model's context: expected at most 504 with 8 to decode, got 505\n");
  EXPECT_THAT(error_of("--depth=-1"), HasSubstr("--depth: bad number"));
  EXPECT_THAT(error_of("--depth 512"), HasSubstr("expected at most 511 with 1 to decode"));
  EXPECT_THAT(error_of("--depth 9223372036854775807"), HasSubstr("more tokens"));
  EXPECT_THAT(error_of("--decode 513"), HasSubstr("expected at most 512, got 513"));
  EXPECT_EQ(error_of("--decode 0"), "lily: --decode: bad number of tokens: expected 1 or more, got 0\n");
  EXPECT_THAT(error_of("--ablate all"), HasSubstr("has none to switch off"));
  for (const char* bad : {"--decode 18446744073709551615", "--decode=-1", "--decode x", "-r 0", "-r=-1", "--only both",
                          "--backend none", "stray", "--json /", "--json /nowhere/x"}) {
    error_of(bad);
  }
  EXPECT_THAT(error_of("--json " + (model.directory / "model.safetensors")), HasSubstr("is read by this command"));
  EXPECT_THAT(error_of("--json " + (model.directory / "config.json")), HasSubstr("is read by this command"));
}

TEST(Benchmark, EveryRepetitionStartsWhereTheRowSays) {
  test::FakeBackend backend(50, 1000);
  const cli::BenchPlan plan{.prompts = {7}, .depths = {0, 10, 25}, .decode = 3, .repetitions = 2, .chunk = 4};
  std::vector<cli::BenchRow> rows;
  const auto done = cli::run_benchmark(backend, plan, [&](const cli::BenchRow& row) { rows.push_back(row); });
  ASSERT_TRUE(done.ok()) << done.error().message();
  // A state a token too deep would be full: it holds 28.
  EXPECT_THAT(backend.breaches, ElementsAre());
  // Three times the prompt, then each depth once, from the one before.
  EXPECT_THAT(backend.chunks, ElementsAre(4, 3, 4, 3, 4, 3, 4, 4, 2, 4, 4, 4, 3));
  EXPECT_EQ(backend.snapshots, 3);
  EXPECT_EQ(backend.decoded, 3 * 3 * 3);
  ASSERT_THAT(rows, SizeIs(4));
  for (const cli::BenchRow& row : rows) EXPECT_THAT(row.rates, SizeIs(2));
  EXPECT_EQ(rows[0].kind, cli::BenchKind::prefill);
  EXPECT_EQ(rows[0].tokens, 7);
  EXPECT_EQ(rows[3].kind, cli::BenchKind::decode);
  EXPECT_EQ(rows[3].depth, 25);
}

TEST(Benchmark, ABackendsErrorEndsIt) {
  test::FakeBackend backend(50, 1000);
  backend.fail_next_prefill = true;
  const auto done = cli::run_benchmark(backend, {.prompts = {7}}, [](const cli::BenchRow&) { FAIL(); });
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message(), "fake: told to fail");
}

// Slower without one mechanism, and unable to work without the other.
struct SwitchedBackend : test::FakeBackend {
  SwitchedBackend() : FakeBackend(50, 1000) {}
  std::vector<Mechanism> mechanisms() const override { return {{"memory", true, false, 5}, {"speed", true, true}}; }
  Result<void> without(const std::string& mechanism) override {
    switches += mechanism.substr(0, 1) + ",";
    fail_next_prefill = mechanism == "memory";
    delay = std::chrono::microseconds(mechanism == "speed" ? 4000 : 400);
    return {};
  }
  std::string switches;  // first letters; nothing: all on
};

TEST(Ablation, PairsAlternateAndAFailureIsSkipped) {
  SwitchedBackend backend;
  const cli::BenchPlan plan{.prompts = {7, 9}, .depths = {10}, .decode = 3, .repetitions = 3};
  std::vector<cli::AblationRow> rows;
  const auto done =
      cli::run_ablation(backend, plan, backend.mechanisms(), [&](const cli::AblationRow& row) { rows.push_back(row); });
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_THAT(backend.breaches, ElementsAre());
  // Both prompts are longer than the first mechanism's 5 tokens, so they are one.
  const std::string pairs = ",s,s,,,s,,";
  EXPECT_EQ(backend.switches, ",m,,," + pairs + pairs + pairs);
  ASSERT_THAT(rows, SizeIs(4));
  EXPECT_EQ(rows[0].tokens, 5);
  EXPECT_EQ(rows[0].skipped, "fake: told to fail");
  EXPECT_EQ(rows[2].tokens, 9);
  EXPECT_EQ(rows[3].kind, cli::BenchKind::decode);
  EXPECT_EQ(rows[3].depth, 10);
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].mechanism, "speed");
    ASSERT_THAT(rows[i].ratios(), SizeIs(3));
    for (const double ratio : rows[i].ratios()) EXPECT_GT(ratio, 1);
  }
}

TEST(Benchmark, MedianOfRates) {
  const auto median = [](std::vector<double> rates) { return cli::BenchRow{.rates = std::move(rates)}.median(); };
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({9, 1, 4, 2}), 3);
}

}  // namespace
}  // namespace lily
