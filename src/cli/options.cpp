#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "base/mapped_file.h"
#include "text/token_ids.h"

namespace lily::cli {

CLI::Validator whole_number() {
  const auto check = [](const std::string& text) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc{} && stop == end) return std::string();
    return "expected a whole number, 0 or more, got " + text;
  };
  return CLI::Validator(check, "NUMBER");
}

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("-m,--model", options.model,
                 "Model directory (else $LILY_MODEL, the last pulled one, the bundled one)")
      ->type_name("DIR");
  app.add_option("--backend", options.backend, "What computes: auto, cpu, cuda, emulator or reference")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "CPU threads; 0: one a core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_flag("--exact", options.exact, "On the CPU: float32 activations and KV cache, slower");
  app.add_flag("--no-mmap", options.no_mmap,
               "Copy the weights into memory: slower to start, up to half again as fast afterwards");
  app.add_option("--isa", options.isa, "CPU instruction set: amx, avx512, avx2, neon, portable; else the best there is")
      ->type_name("NAME");
  app.add_option("--chunk", options.chunk, "Tokens prefilled at a time; 0: as many as suit the backend")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
}

void add_context_option(CLI::App& app, ModelOptions& options) {
  app.add_option("--context", options.context, "Tokens that the state may hold; 0: the model's limit")
      ->check(whole_number())
      ->capture_default_str();
}

void add_sampling_options(CLI::App& app, SamplingOptions& options) {
  const char* group = "Sampling (unset: the model's generation_config.json)";
  const auto add = [&](const char* name, auto& value, const char* what) {
    return app.add_option(name, value, what)->group(group);
  };
  add("--temperature", options.temperature, "0: always the likeliest token");
  add("--top-k", options.top_k, "Only the k likeliest tokens; 0: all");
  add("--top-p", options.top_p, "Only the likeliest tokens that together reach this probability");
  add("--min-p", options.min_p, "Only tokens with at least this fraction of the likeliest's probability");
  add("--repetition-penalty", options.repetition_penalty, "Divides the logits of tokens in the reply; 1: none");
  add("--presence-penalty", options.presence_penalty, "Taken from the logits of tokens in the reply");
  add("--frequency-penalty", options.frequency_penalty, "The same, once for every occurrence");
  add("--seed", options.seed, "Same seed, same text")->check(whole_number());
}

Result<SamplingParams> resolve(const SamplingOptions& options, const SamplingParams& defaults) {
  SamplingParams params = defaults;
  params.temperature = options.temperature.value_or(defaults.temperature);
  params.top_k = options.top_k.value_or(defaults.top_k);
  params.top_p = options.top_p.value_or(defaults.top_p);
  params.min_p = options.min_p.value_or(defaults.min_p);
  params.repetition_penalty = options.repetition_penalty.value_or(defaults.repetition_penalty);
  params.presence_penalty = options.presence_penalty.value_or(defaults.presence_penalty);
  params.frequency_penalty = options.frequency_penalty.value_or(defaults.frequency_penalty);
  params.seed = options.seed ? *options.seed : std::random_device{}();
  LILY_CHECK(check(params));
  return params;
}

Result<std::vector<int32_t>> read_token_file(const std::string& path) {
  LILY_TRY(const std::string text, read_input(path));
  return parse_token_ids(text, path);
}

}  // namespace lily::cli
