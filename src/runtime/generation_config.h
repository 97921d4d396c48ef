// generation_config.json: how the model's makers recommend to sample. (Its end tokens are in ModelConfig.)
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/sampler.h"

namespace lily {

// What the file leaves out keeps SamplingParams' defaults, which are Qwen3.6's. "do_sample": false means temperature 0.
// Unknown keys are ignored: the format has many. `where` names the file in errors.
Result<SamplingParams> parse_generation_config(std::string_view json, const std::string& where);

// The file of a model directory; a directory without one gives the defaults.
Result<SamplingParams> load_generation_config(const std::string& directory);

}  // namespace lily
