// Bytes and operations, counted from a model's shapes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/checkpoint.h"
#include "model/config.h"
#include "model/tensor_names.h"
#include "model/tensor_spec.h"

namespace lily {

struct PartSize {
  int64_t tensors = 0;
  int64_t parameters = 0;  // weights, however they are packed; scales and biases are no parameters
  int64_t bytes = 0;       // as stored, scales and biases included

  double bits_per_parameter() const;
  PartSize& operator+=(const PartSize& other);
};

using PartSizes = std::map<TensorPart, PartSize>;

PartSizes sizes_by_part(std::span<const TensorSpec> tensors, const ModelConfig& config);
PartSizes sizes_by_part(const TensorMap& tensors, const ModelConfig& config);

// What one decoded token of one sequence costs. Vision and MTP tensors cost nothing; of the embedding one row is read.
struct TokenCost {
  std::map<TensorPart, int64_t> weight_bytes;  // read; of the experts, those of one token
  int64_t weight_bytes_total = 0;
  int64_t state_bytes = 0;            // recurrent and convolution state, float32, read and written
  int64_t kv_bytes_per_position = 0;  // bf16 keys and values of all full-attention layers

  int64_t matrix_flops = 0;                  // projections, convolution; 2 for each weight used
  int64_t head_flops = 0;                    // lm_head alone: prefill needs it for the last token only
  int64_t delta_flops = 0;                   // recurrence: 7 for each element of the state
  int64_t attention_flops_per_position = 0;  // scores and weighted values

  int64_t bytes_at(int64_t context) const;
  int64_t flops_at(int64_t context) const;
  int64_t prompt_flops(int64_t tokens) const;  // prefill from position 0; each token attends to itself, too
};

TokenCost token_cost(const PartSizes& sizes, const ModelConfig& config);

}  // namespace lily
