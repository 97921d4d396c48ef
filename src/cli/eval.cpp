// lily eval: what a model computes, as numbers: its logits, its perplexity on a text, the distance of two sets of logits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/logit_comparison.h"
#include "cli/options.h"
#include "cli/output_path.h"
#include "cli/progress.h"
#include "cli/scoring.h"
#include "model/safetensors_writer.h"

namespace lily::cli {
namespace {

using nlohmann::ordered_json;

struct Settings {
  ModelOptions model;
  std::string tokens, text, out;
  std::string a, b;
  double margin = 0.5;
  bool json = false;
};

ScoringOptions scoring_options(const Engine& engine, ProgressBar& bar) {
  return {.chunk = engine.chunk, .progress = [&bar](int64_t done, int64_t total) {
            bar.set_total(total);
            bar.update(done);
          }};
}

Result<void> write_logits(Engine& engine, std::span<const int32_t> tokens, const std::string& path) {
  const auto vocab = static_cast<int64_t>(engine.config().vocab_size);
  const TensorSpec spec{.name = "logits", .dtype = DType::f32, .shape = {static_cast<int64_t>(tokens.size()), vocab}};
  LILY_TRY(const SafetensorsWriter writer, SafetensorsWriter::create(path, {&spec, 1}));
  ProgressBar bar("scoring", static_cast<int64_t>(tokens.size()), ProgressUnit::tokens);
  const auto write = [&](int64_t first, std::span<const float> logits) {
    return writer.write(0, first * vocab * static_cast<int64_t>(sizeof(float)), std::as_bytes(logits));
  };
  LILY_CHECK(score(*engine.backend, tokens, scoring_options(engine, bar), write));
  return writer.sync();
}

Result<void> run_logits(const Settings& settings) {
  LILY_TRY(Engine engine, load_engine(settings.model, NeedTokenizer::no));
  LILY_CHECK(check_output(settings.out, *engine.checkpoint, {settings.tokens}));
  LILY_TRY(const std::vector<int32_t> tokens, read_token_file(settings.tokens));
  return replace_file(settings.out, [&](const std::string& path) { return write_logits(engine, tokens, path); });
}

// Bytes of the tokens that are scored, for bits per byte.
int64_t scored_bytes(const Tokenizer& tokenizer, std::span<const int32_t> tokens, int64_t window) {
  int64_t bytes = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i % static_cast<size_t>(window) != 0) bytes += static_cast<int64_t>(tokenizer.bytes_of(tokens[i]).size());
  }
  return bytes;
}

Result<void> run_perplexity(const Settings& settings) {
  if (settings.text.empty() == settings.tokens.empty()) {
    return Error{.where = "perplexity", .what = "needs a text", .expected = "either --file or --tokens"};
  }
  LILY_TRY(Engine engine, load_engine(settings.model, settings.text.empty() ? NeedTokenizer::no : NeedTokenizer::yes));
  std::vector<int32_t> tokens;
  if (settings.text.empty()) {
    LILY_TRY(tokens, read_token_file(settings.tokens));
  } else {
    LILY_TRY(const std::string text, read_input(settings.text));
    tokens = engine.tokenizer->encode(text);
  }
  const int64_t context = engine.config().max_position_embeddings;
  const int64_t window = settings.model.context > 0 ? std::min(settings.model.context, context) : context;
  std::optional<ProgressBar> bar;
  bar.emplace("scoring", static_cast<int64_t>(tokens.size()), ProgressUnit::tokens);
  LILY_TRY(const Perplexity result, perplexity(*engine.backend, tokens, window, scoring_options(engine, *bar)));
  bar.reset();
  ordered_json line = {{"tokens", tokens.size()},
                       {"scored", result.scored},
                       {"mean_nll", result.mean_nll()},
                       {"perplexity", std::exp(result.mean_nll())}};
  if (engine.tokenizer) {
    const auto bytes = static_cast<double>(scored_bytes(*engine.tokenizer, tokens, window));
    line["bits_per_byte"] = result.nll / std::log(2.0) / bytes;
  }
  if (settings.json) return std::puts(line.dump().c_str()), Result<void>();
  for (const auto& [name, value] : line.items()) fmt::print("{:<14} {}\n", name, value.dump());
  return {};
}

ordered_json to_json(const LogitComparison& c) {
  ordered_json agreements = ordered_json::array();
  for (const TopOneAgreement& agreement : c.agreements) {
    agreements.push_back({{"margin", agreement.margin < 0 ? ordered_json() : ordered_json(agreement.margin)},
                          {"positions", agreement.positions},
                          {"equal", agreement.equal}});
  }
  return {
      {"positions", c.positions},
      {"vocab", c.vocab},
      {"relative_error", c.relative_error},
      {"largest_error", {{"value", c.largest_error}, {"position", c.position}, {"id", c.id}, {"a", c.a}, {"b", c.b}}},
      {"top1", agreements},
      {"mean_kl", c.mean_kl}};
}

void print_table(const LogitComparison& c) {
  fmt::print("positions       {} of {} logits\n", c.positions, c.vocab);
  fmt::print("relative error  {:.3e}\n", c.relative_error);
  fmt::print("largest error   {:.3e} at position {}, id {}: {:.6f} against {:.6f}\n", c.largest_error, c.position, c.id,
             c.a, c.b);
  for (const TopOneAgreement& agreement : c.agreements) {
    const auto share =
        100.0 * static_cast<double>(agreement.equal) / static_cast<double>(std::max<int64_t>(agreement.positions, 1));
    const std::string where =
        agreement.margin < 0 ? "everywhere" : fmt::format("where b's margin is over {:g}", agreement.margin);
    fmt::print("same top id     {}/{} ({:.2f} %) {}\n", agreement.equal, agreement.positions, share, where);
  }
  fmt::print("mean KL         {:.3e} nats\n", c.mean_kl);
}

Result<void> run_compare(const Settings& settings) {
  // A margin is never negative: over -1 means everywhere.
  LILY_TRY(const LogitComparison comparison, compare_logits(settings.a, settings.b, {-1, 1e-3, settings.margin}));
  settings.json ? void(std::puts(to_json(comparison).dump().c_str())) : print_table(comparison);
  return {};
}

CLI::App* add_logits(CLI::App& eval, Settings& settings) {
  CLI::App* command = eval.add_subcommand("logits", "Write the logits at every position of a token file");
  add_model_options(*command, settings.model);
  command->add_option("--tokens", settings.tokens, "Token ids, separated by white space")
      ->required()
      ->type_name("FILE");
  command->add_option("--out", settings.out, "Safetensors file with one tensor, logits: F32 [tokens, vocab]")
      ->required()
      ->type_name("FILE");
  return command;
}

CLI::App* add_perplexity(CLI::App& eval, Settings& settings) {
  CLI::App* command = eval.add_subcommand("perplexity", "How well the model predicts a text");
  add_model_options(*command, settings.model);
  add_context_option(*command, settings.model);
  command->add_option("--file", settings.text, "A text; one longer than the context is scored in windows")
      ->type_name("FILE");
  command->add_option("--tokens", settings.tokens, "The same as token ids")->type_name("FILE");
  command->add_flag("--json", settings.json, "One JSON object");
  return command;
}

CLI::App* add_compare(CLI::App& eval, Settings& settings) {
  CLI::App* command = eval.add_subcommand("compare", "How far logits A are from logits B, the reference");
  command->add_option("a", settings.a, "Safetensors file with a tensor logits")->required()->type_name("A");
  command->add_option("b", settings.b, "The reference")->required()->type_name("B");
  command->add_option("--margin", settings.margin, "Compare the top ids where b's lead is over this, too")
      ->capture_default_str();
  command->add_flag("--json", settings.json, "One JSON object");
  return command;
}

int exit_code(const Result<void>& result) { return result ? 0 : report(result.error()); }

}  // namespace

Command eval_command(CLI::App& app) {
  const auto settings = std::make_shared<Settings>();
  CLI::App* eval = app.add_subcommand("eval", "Measure what a model computes");
  eval->require_subcommand(1);
  const CLI::App* logits = add_logits(*eval, *settings);
  const CLI::App* perplexity = add_perplexity(*eval, *settings);
  add_compare(*eval, *settings);
  return {eval, [=] {
            if (logits->parsed()) return exit_code(run_logits(*settings));
            if (perplexity->parsed()) return exit_code(run_perplexity(*settings));
            return exit_code(run_compare(*settings));
          }};
}

}  // namespace lily::cli
