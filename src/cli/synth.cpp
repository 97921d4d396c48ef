// lily synth: a checkpoint of random weights in the published form, for benchmarks at full size.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "model/shapes.h"
#include "model/synthetic.h"
#include "model/weights.h"

namespace lily::cli {
namespace {

struct SynthOptions {
  std::string shape = "qwen3.6-35b-a3b";
  std::string out;
  int layers = 0;
  Quantization quantization = {.bits = 4, .group_size = 64};
  uint64_t seed = 0;
};

Result<void> make_empty_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return Error{path, "cannot create: " + error.message()};
  const bool empty = std::filesystem::is_empty(path, error);
  if (error || !empty) return Error{path, "not empty", "a new or empty directory"};
  return {};
}

Result<int64_t> synthesize(const SynthOptions& options) {
  LILY_TRY(ModelConfig config, named_shape(options.shape));
  if (options.layers > 0) config.layers = layer_pattern(options.layers);
  config.quantization = mixed_quantization(config, options.quantization, 8);
  int64_t bytes = 0;
  for (const TensorSpec& tensor : published_tensors(config)) bytes += tensor.bytes();

  LILY_CHECK(make_empty_directory(options.out));
  {
    ProgressBar bar("Writing " + options.out, bytes, ProgressUnit::bytes);
    LILY_CHECK(write_synthetic(options.out, config, options.seed, [&](int64_t done) { bar.update(done); }));
  }
  LILY_TRY(const Checkpoint checkpoint, Checkpoint::open(options.out));
  LILY_TRY(const ModelWeights weights, bind_weights(checkpoint));
  return bytes;
}

}  // namespace

Command synth_command(CLI::App& app) {
  auto options = std::make_shared<SynthOptions>();
  CLI::App* command = app.add_subcommand("synth", "Write a model of random weights with real shapes");
  command->add_option("--shape", options->shape, "qwen3.6-35b-a3b or tiny")->capture_default_str();
  command->add_option("--layers", options->layers, "Number of layers (default: the shape's)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--bits", options->quantization.bits, "Bits of a weight; routers keep 8")
      ->check(CLI::IsMember({2, 3, 4, 5, 6, 8}))
      ->capture_default_str();
  command->add_option("--group", options->quantization.group_size, "Weights that share a scale")
      ->check(CLI::IsMember({32, 64, 128}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the random weights")
      ->check(whole_number())
      ->capture_default_str();
  command->add_option("--out", options->out, "New or empty directory")->required();
  return {command, [options] {
            const Result<int64_t> bytes = synthesize(*options);
            if (!bytes) return report(bytes.error());
            fmt::print("{}: {:.2f} GB\n", options->out, static_cast<double>(*bytes) / 1e9);
            return 0;
          }};
}

}  // namespace lily::cli
