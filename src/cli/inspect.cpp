// lily inspect: what a model directory or a named shape holds, and what a token of it costs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "backend/gpu/plan_report.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "model/accounting.h"
#include "model/shapes.h"
#include "model/weights.h"

namespace lily::cli {
namespace {

using nlohmann::json;

struct InspectOptions {
  std::string directory, shape;
  bool json = false;
  std::string plan;  // "prefill" or "decode"
  std::string backend = "metal";
  std::optional<int64_t> tokens;
};

struct Inspection {
  ModelConfig config;
  PartSizes sizes;
  std::string warning;
};

double mega(int64_t value) { return static_cast<double>(value) / 1e6; }

// "286.1 MB", "72.3 kB"
std::string bytes_text(int64_t bytes) {
  if (bytes >= 1'000'000) return fmt::format("{:.1f} MB", mega(bytes));
  return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
}

// Trained norms lie around 1. Around 0 or 2 the file's norms do not follow the layout of its conv1d tensors: the
// model would run and talk nonsense, so it is worth a line, but no reason to guess.
std::string check_norms(const ModelWeights& weights) {
  double sum = 0;
  size_t count = 0;
  for (const LayerWeights& layer : weights.layers) {
    sum = std::accumulate(layer.input_norm.begin(), layer.input_norm.end(), sum);
    count += layer.input_norm.size();
  }
  const double mean = sum / static_cast<double>(std::max<size_t>(count, 1));
  if (mean > 0.4 && mean < 1.7) return "";
  return fmt::format("the mean of the layer norms is {:.2f}; 1 would be usual: folded twice or not at all?", mean);
}

Result<Inspection> inspect(const InspectOptions& options) {
  if (options.directory.empty() == options.shape.empty()) {
    return Error{.where = "inspect", .what = "nothing to look at", .expected = "a directory or --shape NAME"};
  }
  if (!options.shape.empty()) {
    LILY_TRY(ModelConfig config, named_shape(options.shape));
    PartSizes sizes = sizes_by_part(published_tensors(config), config);
    return Inspection{std::move(config), std::move(sizes), ""};
  }
  LILY_TRY(const Checkpoint checkpoint, Checkpoint::open(options.directory));
  LILY_TRY(const ModelWeights weights, bind_weights(checkpoint));
  return Inspection{checkpoint.config(), sizes_by_part(checkpoint.tensors(), checkpoint.config()),
                    check_norms(weights)};
}

PartSize total(const PartSizes& sizes, bool skipped) {
  PartSize sum;
  for (const auto& [part, size] : sizes) {
    if (is_skipped(part) == skipped) sum += size;
  }
  return sum;
}

std::string describe(const QuantizationConfig& q) {
  if (q.fallback.bits == 0) return "none";
  return fmt::format("{} bits, group size {}, {} modules of their own", q.fallback.bits, q.fallback.group_size,
                     q.overrides.size());
}

void print_architecture(const ModelConfig& c) {
  const auto full = std::count(c.layers.begin(), c.layers.end(), LayerKind::full_attention);
  fmt::print("architecture      {}, hidden {}, vocabulary {}, {} head\n", c.model_type, c.hidden_size, c.vocab_size,
             c.tie_word_embeddings ? "tied" : "separate");
  fmt::print("layers            {}: {} linear attention, {} full attention\n", c.num_layers(), c.num_layers() - full,
             full);
  fmt::print("full attention    {} query heads, {} KV heads of {}, RoPE on {} with theta {:g}\n", c.num_heads,
             c.num_kv_heads, c.head_dim, c.rotary_dim, c.rope_theta);
  fmt::print("linear attention  {} key heads of {}, {} value heads of {}, convolution of {}\n", c.linear_key_heads,
             c.linear_key_dim, c.linear_value_heads, c.linear_value_dim, c.conv_kernel);
  if (c.is_moe()) {
    fmt::print("experts           {} of {}, {} a token, shared expert of {}\n", c.num_experts, c.expert_size,
               c.experts_per_token, c.shared_expert_size);
  } else {
    fmt::print("MLP               {}\n", c.mlp_size);
  }
  fmt::print("context           {} positions\n", c.max_position_embeddings);
  fmt::print("quantisation      {}\n", describe(c.quantization));
}

void print_row(const char* name, const PartSize& size, int64_t per_token) {
  fmt::print("{:<18}{:>8}{:>16}{:>13}{:>8.2f}{:>13}\n", name, size.tensors, size.parameters, bytes_text(size.bytes),
             size.bits_per_parameter(), bytes_text(per_token));
}

void print_text(const Inspection& inspection) {
  const ModelConfig& c = inspection.config;
  const TokenCost cost = token_cost(inspection.sizes, c);
  print_architecture(c);
  fmt::print("\n{:<18}{:>8}{:>16}{:>13}{:>8}{:>13}\n", "part", "tensors", "parameters", "size", "bits", "per token");
  for (const auto& [part, bytes] : cost.weight_bytes) {  // a tied head has a cost but no tensors
    const auto size = inspection.sizes.find(part);
    if (!is_skipped(part)) print_row(name_of(part), size == inspection.sizes.end() ? PartSize{} : size->second, bytes);
  }
  print_row("total", total(inspection.sizes, false), cost.weight_bytes_total);
  for (const auto& [part, size] : inspection.sizes) {
    if (is_skipped(part))
      fmt::print("skipped: {} {} tensors, {}\n", size.tensors, name_of(part), bytes_text(size.bytes));
  }
  fmt::print("\none decoded token, context of N positions\n");
  fmt::print("  weights         {}\n", bytes_text(cost.weight_bytes_total));
  fmt::print("  state           {}, read and written\n", bytes_text(cost.state_bytes));
  fmt::print("  KV              {} bytes x N ({} at 4096, {} at 32768)\n", cost.kv_bytes_per_position,
             bytes_text(cost.kv_bytes_per_position * 4096), bytes_text(cost.kv_bytes_per_position * 32768));
  fmt::print("  operations      {:.1f} MFLOP + {} FLOP x N ({:.1f} MFLOP of them the head's)\n", mega(cost.flops_at(0)),
             cost.attention_flops_per_position, mega(cost.head_flops));
}

json to_json(const PartSize& size) {
  return {{"tensors", size.tensors},
          {"parameters", size.parameters},
          {"bytes", size.bytes},
          {"bits_per_parameter", size.bits_per_parameter()}};
}

json config_summary(const ModelConfig& c) {
  const auto full = std::count(c.layers.begin(), c.layers.end(), LayerKind::full_attention);
  return {{"model_type", c.model_type},
          {"hidden_size", c.hidden_size},
          {"vocab_size", c.vocab_size},
          {"tie_word_embeddings", c.tie_word_embeddings},
          {"layers", c.num_layers()},
          {"full_attention_layers", full},
          {"num_heads", c.num_heads},
          {"num_kv_heads", c.num_kv_heads},
          {"head_dim", c.head_dim},
          {"rotary_dim", c.rotary_dim},
          {"rope_theta", c.rope_theta},
          {"linear_key_heads", c.linear_key_heads},
          {"linear_value_heads", c.linear_value_heads},
          {"linear_key_dim", c.linear_key_dim},
          {"linear_value_dim", c.linear_value_dim},
          {"conv_kernel", c.conv_kernel},
          {"num_experts", c.num_experts},
          {"experts_per_token", c.experts_per_token},
          {"expert_size", c.expert_size},
          {"shared_expert_size", c.shared_expert_size},
          {"mlp_size", c.mlp_size},
          {"max_position_embeddings", c.max_position_embeddings},
          {"eos_token_ids", c.eos_token_ids},
          {"bits", c.quantization.fallback.bits},
          {"group_size", c.quantization.fallback.group_size}};
}

void print_json(const Inspection& inspection) {
  const TokenCost cost = token_cost(inspection.sizes, inspection.config);
  json parts = json::object(), skipped = json::object(), weights = json::object();
  for (const auto& [part, size] : inspection.sizes) (is_skipped(part) ? skipped : parts)[name_of(part)] = to_json(size);
  for (const auto& [part, bytes] : cost.weight_bytes) weights[name_of(part)] = bytes;
  json object = {{"config", config_summary(inspection.config)},
                 {"parts", std::move(parts)},
                 {"total", to_json(total(inspection.sizes, false))},
                 {"skipped", std::move(skipped)},
                 {"per_token",
                  {{"weight_bytes_by_part", std::move(weights)},
                   {"weight_bytes", cost.weight_bytes_total},
                   {"state_bytes", cost.state_bytes},
                   {"kv_bytes_per_position", cost.kv_bytes_per_position},
                   {"matrix_flops", cost.matrix_flops},
                   {"head_flops", cost.head_flops},
                   {"delta_flops", cost.delta_flops},
                   {"attention_flops_per_position", cost.attention_flops_per_position}}}};
  if (!inspection.warning.empty()) object["warning"] = inspection.warning;
  fmt::print("{}\n", object.dump(2));
}

// Bytes that a step or chunk moves at least: weights (of the experts, those that its tokens are likely to choose), recurrent
// state, KV, and what its kernels hand to each other, written once and read once.
double plan_bytes(const Inspection& inspection, bool decode, int64_t tokens, const gpu::PlanReport& report) {
  const TokenCost cost = token_cost(inspection.sizes, inspection.config);
  const ModelConfig& c = inspection.config;
  double weights = static_cast<double>(cost.weight_bytes_total);
  if (const auto experts = cost.weight_bytes.find(TensorPart::experts); !decode && experts != cost.weight_bytes.end()) {
    const double share = static_cast<double>(c.experts_per_token) / c.num_experts;
    const double chosen = c.num_experts * (1 - std::pow(1 - share, static_cast<double>(tokens)));
    weights += static_cast<double>(experts->second) * (chosen / c.experts_per_token - 1);
  }
  return weights + static_cast<double>(cost.state_bytes) + static_cast<double>(cost.kv_bytes_per_position * tokens) +
         2.0 * static_cast<double>(report.intermediate_bytes);
}

Result<void> print_plan(const InspectOptions& options) {
  LILY_TRY(const Inspection inspection, inspect(options));
  const bool decode = options.plan == "decode";
  const int64_t tokens = options.tokens.value_or(decode ? 4096 : 2048);
  if (tokens < (decode ? 0 : 1) || tokens >= inspection.config.max_position_embeddings) {
    return Error{
        .where = "--tokens",
        .what = "bad number of tokens",
        .expected = "within the model's context of " + std::to_string(inspection.config.max_position_embeddings),
        .got = std::to_string(tokens)};
  }
  LILY_TRY(const gpu::PlanReport report, decode ? gpu::report_decode(inspection.config, options.backend, tokens)
                                                : gpu::report_prefill(inspection.config, options.backend, tokens));
  const double bytes = plan_bytes(inspection, decode, tokens, report);
  if (options.json) {
    const json object = {{"plan", options.plan},
                         {"backend", options.backend},
                         {"tokens", tokens},
                         {"kernels", report.kernels},
                         {"stages", report.stages},
                         {"bytes", static_cast<int64_t>(bytes)},
                         {"intermediate_bytes", report.intermediate_bytes},
                         {"temporary_bytes", report.temporary_bytes},
                         {"by_kernel", report.by_kernel}};
    fmt::print("{}\n", object.dump(2));
    return {};
  }
  if (decode) {
    fmt::print("one decode step after {} tokens, on {}\n", tokens, options.backend);
  } else {
    fmt::print("a prefill chunk of {} tokens, on {}\n", tokens, options.backend);
  }
  fmt::print("  kernels         {}\n  stages          {}\n  bytes           {}\n", report.kernels, report.stages,
             bytes_text(static_cast<int64_t>(bytes)));
  fmt::print("  intermediates   {} written, in {} of memory\n",
             bytes_text(static_cast<int64_t>(report.intermediate_bytes)),
             bytes_text(static_cast<int64_t>(report.temporary_bytes)));
  for (const auto& [kernel, count] : report.by_kernel) fmt::print("  {:>5} x {}\n", count, kernel);
  return {};
}

int run(const InspectOptions& options) {
  if (!options.plan.empty()) {
    const Result<void> printed = print_plan(options);
    return printed ? 0 : report(printed.error());
  }
  const Result<Inspection> inspection = inspect(options);
  if (!inspection) return report(inspection.error());
  if (!inspection->warning.empty()) fmt::print(stderr, "lily: warning: {}\n", inspection->warning);
  options.json ? print_json(*inspection) : print_text(*inspection);
  return 0;
}

}  // namespace

Command inspect_command(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = app.add_subcommand("inspect", "Show a model's shapes, sizes and cost of a token");
  command->add_option("directory", options->directory, "Model directory");
  command->add_option("--shape", options->shape, "A known shape instead: qwen3.6-35b-a3b or tiny");
  command->add_option("--plan", options->plan, "The kernels of a GPU instead: of one decode step or of a prefill chunk")
      ->check(CLI::IsMember({"prefill", "decode"}));
  command->add_option("--backend", options->backend, "Whose plan: cuda, metal or emulator")->capture_default_str();
  command->add_option("--tokens", options->tokens, "Depth of the step (default: 4096), or tokens of the chunk (2048)")
      ->check(whole_number())
      ->type_name("N");
  command->add_flag("--json", options->json, "As JSON");
  return {command, [options] { return run(*options); }};
}

}  // namespace lily::cli
