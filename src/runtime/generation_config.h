// generation_config.json: what the model's makers recommend for sampling, and the ids that end a reply.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/sampler.h"

namespace lily {

struct GenerationConfig {
  SamplingParams sampling;  // what the file leaves out keeps SamplingParams' defaults, which are Qwen3.6's
  std::vector<int32_t> eos_token_ids;
};

// `where` names the file in errors. "do_sample": false means temperature 0. Unknown keys are ignored: the format has many.
Result<GenerationConfig> parse_generation_config(std::string_view json, const std::string& where);

// The file of a model directory; a directory without one gives the defaults.
Result<GenerationConfig> load_generation_config(const std::string& directory);

// Ids of both lists, each once: a model may end a reply by any of them.
std::vector<int32_t> unite(std::vector<int32_t> ids, const std::vector<int32_t>& others);

}  // namespace lily
