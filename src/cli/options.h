// Options that several commands share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/sampler.h"

namespace lily::cli {

struct ModelOptions {
  std::string model;  // -m; empty: see find_model
  std::string backend = "auto";
  int threads = 0;
  bool exact = false;
  bool no_mmap = false;
  std::string isa;
  int64_t context = 0;  // 0: the model's
  int64_t chunk = 0;    // tokens of one prefill call; 0: what suits the backend
};
void add_model_options(CLI::App& app, ModelOptions& options);  // all but --context
void add_context_option(CLI::App& app, ModelOptions& options);

struct SamplingOptions {
  std::optional<float> temperature, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> top_k;
  std::optional<uint64_t> seed;
};
// A check that the library does not have: it lets -1 pass for an unsigned number and cuts what is too large.
CLI::Validator whole_number();

void add_sampling_options(CLI::App& app, SamplingOptions& options);

// What was given, else the model's own; a random seed where none was given.
Result<SamplingParams> resolve(const SamplingOptions& options, const SamplingParams& defaults);

// See parse_token_ids.
Result<std::vector<int32_t>> read_token_file(const std::string& path);

}  // namespace lily::cli
