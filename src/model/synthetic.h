// Random checkpoints of any shape, for tests and benchmarks: real layout, meaningless weights.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "model/config.h"
#include "model/tensor_spec.h"

namespace lily {

// Bytes [offset, offset + out.size()) of a tensor of the published form; whole elements. The values depend on the seed,
// the name and the position only. Weights are spread so that every projection keeps the size of its input, which
// leaves hidden states finite at any depth; norms lie near 1 (folded), decays within what trained models have.
void fill_synthetic(const TensorSpec& tensor, const ModelConfig& config, uint64_t seed, int64_t offset,
                    std::span<std::byte> out);

// Writes a checkpoint of `config` without a tokenizer into the existing, empty `directory`; config.json comes last.
// `progress` is called with the bytes done.
Result<void> write_synthetic(const std::string& directory, const ModelConfig& config, uint64_t seed,
                             const std::function<void(int64_t)>& progress = {});

}  // namespace lily
