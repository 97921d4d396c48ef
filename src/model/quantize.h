// From float weights to the published MLX form.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "model/accounting.h"
#include "model/config.h"

namespace lily {

// Quantises one row of bf16 values (held as float) as MLX does, group by group: the edge of larger magnitude becomes
// the bias and the scale is chosen so that zero keeps a code. row.size() is a multiple of the group size.
// codes: row.size() * bits / 8 bytes, LSB first; scales and biases: one bf16 a group.
void quantize_row(std::span<const float> row, Quantization q, std::byte* codes, uint16_t* scales, uint16_t* biases);

struct QuantizeOptions {
  Quantization weights = {.bits = 4, .group_size = 64};
  int router_bits = 8;  // of the router and the shared expert's gate
};

struct QuantizeSummary {
  PartSizes before, after;  // skipped parts are in `before` only
};

// Converts the unquantised checkpoint in `source` (Hugging Face or MLX form): experts become switch_mlp matrices, norms
// are folded, the convolution is moved, vision and MTP tensors are left out; the tokenizer's files and
// generation_config.json are copied. Written to `destination`.partial, which takes its name at the end.
// `progress` is called with the weights done and their total.
Result<QuantizeSummary> quantize_checkpoint(const std::string& source, const std::string& destination,
                                            const QuantizeOptions& options,
                                            const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace lily
