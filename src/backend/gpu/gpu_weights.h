// The weights of a model in a device's memory, in the forms that the kernels want.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/gpu/device.h"
#include "model/config.h"
#include "model/weights.h"

namespace lily::gpu {

// A matrix as kernels/args.h describes it.
struct GpuMatrix {
  uint32_t rows = 0, cols = 0, bits = 0, group_size = 0;
  BufferView codes, scales, biases;
};

struct GpuLayer {
  BufferView input_norm, post_attention_norm;  // f32 [hidden]
  GpuMatrix in;                                // linear: qkv | z | b | a;  full: q with gates | k | v
  GpuMatrix out;                               // [hidden, ...]
  // Linear attention, f32: [conv_taps, channels], [value_heads], [value_heads], [128]
  BufferView conv, a_log, dt_bias, norm;
  BufferView q_norm, k_norm;  // full attention, f32 [head_dim]
  // Feed-forward. The shared expert is cut into parts as wide as an expert, which follow the routed ones; a dense MLP is one
  // part and no routed expert.
  GpuMatrix router;    // [experts + 1, hidden]: the last row is the shared expert's gate; no rows in a dense model
  GpuMatrix gate, up;  // [(experts + parts) * width, hidden]
  GpuMatrix down;      // [(experts + parts) * hidden, width]
};

struct GpuWeights {
  std::vector<std::unique_ptr<Buffer>> memory;
  GpuMatrix embed, head;  // the same when tied
  BufferView final_norm;
  BufferView rope;  // f32 [2, rope_low, rotary_dim / 2, (cos, sin)]
  std::vector<GpuLayer> layers;
  uint32_t shared_parts = 0, width = 0;  // of the feed-forward
};

// An error where the kernels do not have the model's shapes.
Result<void> check_shapes(const ModelConfig& config);

// Bytes uploaded so far and in all.
using UploadProgress = std::function<void(size_t done, size_t total)>;

Result<GpuWeights> upload_weights(Device& device, const ModelConfig& config, const ModelWeights& weights,
                                  const UploadProgress& progress = {});

}  // namespace lily::gpu
