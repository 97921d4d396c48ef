// lily quantize: from bf16, f16 or f32 weights to the published MLX form.
#include "model/quantize.h"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/progress.h"

namespace lily::cli {
namespace {

struct Options {
  std::string source, destination;
  QuantizeOptions quantize;
};

void print_summary(const std::string& destination, const QuantizeSummary& summary) {
  PartSize before, after;
  for (const auto& [part, size] : summary.before) {
    if (is_skipped(part)) {
      fmt::print("left out: {} {} tensors, {:.1f} MB\n", size.tensors, name_of(part),
                 static_cast<double>(size.bytes) / 1e6);
    } else {
      before += size;
    }
  }
  for (const auto& [part, size] : summary.after) after += size;
  fmt::print("{}: {:.1f} MB from {:.1f} MB, {:.2f} bits a parameter\n", destination,
             static_cast<double>(after.bytes) / 1e6, static_cast<double>(before.bytes) / 1e6,
             after.bits_per_parameter());
}

int run(const Options& options) {
  Result<QuantizeSummary> summary = [&] {
    ProgressBar bar("Quantising", 0, ProgressUnit::bytes);
    return quantize_checkpoint(options.source, options.destination, options.quantize, [&](int64_t done, int64_t total) {
      bar.set_total(2 * total);  // as bf16
      bar.update(2 * done);
    });
  }();
  if (!summary) return report(summary.error());
  print_summary(options.destination, *summary);
  return 0;
}

}  // namespace

Command quantize_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("quantize", "Convert bf16, f16 or f32 weights to the MLX affine form");
  command->add_option("source", options->source, "Model directory, Hugging Face or MLX form")->required();
  command->add_option("destination", options->destination, "New directory")->required();
  command->add_option("--bits", options->quantize.weights.bits, "Bits of a weight")
      ->check(CLI::IsMember({2, 3, 4, 5, 6, 8}))
      ->capture_default_str();
  command->add_option("--group", options->quantize.weights.group_size, "Weights that share a scale")
      ->check(CLI::IsMember({32, 64, 128}))
      ->capture_default_str();
  command->add_option("--router-bits", options->quantize.router_bits, "Bits of routers and shared-expert gates")
      ->check(CLI::IsMember({2, 3, 4, 5, 6, 8}))
      ->capture_default_str();
  return {command, [options] { return run(*options); }};
}

}  // namespace lily::cli
