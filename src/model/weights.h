// The strict binder: every tensor of a checkpoint is checked once, then only named fields are used.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "model/checkpoint.h"
#include "model/config.h"

namespace lily {

// A weight matrix where it lies in the mapped file, row-major [rows, cols]; out = W x for x [cols].
// Quantised (bits > 0): codes packed LSB first along a row, `bits * cols / 8` bytes a row;
// scales and biases [rows, cols / group_size] of scale_dtype; w = code * scale + bias. Scales may be negative.
// No pointer is aligned: MLX files start their data at any byte.
struct WeightMatrix {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::other;  // of an unquantised matrix: f32, f16 or bf16; u32 when quantised
  int bits = 0;                // 0: not quantised
  int group_size = 0;
  DType scale_dtype = DType::other;
  const std::byte* data = nullptr;
  const std::byte* scales = nullptr;
  const std::byte* biases = nullptr;

  bool quantized() const { return bits > 0; }
  int64_t groups() const { return cols / group_size; }  // of one row
  size_t row_bytes() const { return quantized() ? cols * bits / 8 : cols * size_of(dtype); }
  size_t scale_row_bytes() const { return quantized() ? groups() * size_of(scale_dtype) : 0; }
  size_t bytes() const { return rows * (row_bytes() + 2 * scale_row_bytes()); }

  // Rows [first, first + count) as a matrix of their own.
  WeightMatrix row_block(int64_t first, int64_t count) const;

  // Row `row` as float32 into out[cols]. Slow and plain: for the reference and for tests.
  void dequantize_row(int64_t row, float* out) const;
};

// The matrices of all experts in one [experts * stride, cols]; expert e owns rows [e * stride + offset, ... + rows).
// The published MLX form has stride == rows; the Hugging Face form interleaves gate and up in one tensor.
struct ExpertMatrices {
  WeightMatrix all;
  int64_t stride = 0;
  int64_t offset = 0;
  int64_t rows = 0;

  WeightMatrix operator[](int64_t expert) const { return all.row_block(expert * stride + offset, rows); }
};

// SwiGLU: down(silu(gate x) * up x)
struct MlpWeights {
  WeightMatrix gate, up;  // [size, hidden]
  WeightMatrix down;      // [hidden, size]
};

struct MoeWeights {
  WeightMatrix router;              // [experts, hidden]
  ExpertMatrices gate, up;          // [expert_size, hidden] each
  ExpertMatrices down;              // [hidden, expert_size] each
  MlpWeights shared;                // size shared_expert_size
  WeightMatrix shared_expert_gate;  // [1, hidden]
};

struct FullAttentionWeights {
  WeightMatrix q;                     // [heads * 2 * head_dim, hidden]: per head query rows, then gate rows
  WeightMatrix k, v;                  // [kv_heads * head_dim, hidden]
  WeightMatrix o;                     // [hidden, heads * head_dim]
  std::vector<float> q_norm, k_norm;  // [head_dim], applied as x * w (1 + w already folded)
};

struct LinearAttentionWeights {
  WeightMatrix qkv;            // [conv_channels, hidden]: q | k | v
  WeightMatrix z;              // [value heads * value dim, hidden]
  WeightMatrix a, b;           // [value heads, hidden]
  WeightMatrix out;            // [hidden, value heads * value dim]
  std::vector<float> conv;     // [conv_kernel, conv_channels], last tap = current token
  std::vector<float> a_log;    // [value heads]
  std::vector<float> dt_bias;  // [value heads]
  std::vector<float> norm;     // [value dim], plain weight
};

struct LayerWeights {
  LayerKind kind = LayerKind::linear_attention;
  std::vector<float> input_norm, post_attention_norm;  // [hidden], 1 + w folded
  FullAttentionWeights full;                           // where kind is full_attention
  LinearAttentionWeights linear;                       // where kind is linear_attention
  MoeWeights moe;                                      // where config.is_moe()
  MlpWeights mlp;                                      // else
};

struct ModelWeights {
  WeightMatrix embed;             // [vocab, hidden]
  WeightMatrix head;              // [vocab, hidden]; equal to embed when tied
  std::vector<float> final_norm;  // [hidden], 1 + w folded
  std::vector<LayerWeights> layers;
};

// Binds every tensor that the config calls for; the result points into `checkpoint`, which must outlive it.
// Accepts the published MLX form and the raw Hugging Face form (told apart by the layout of conv1d.weight, which also
// decides whether 1 must be added to norms). Vision and MTP tensors are skipped; any other unknown tensor, a missing or
// mis-shaped one, bits that contradict the shape, or a NaN or infinity in a norm is an error naming file and tensor.
Result<ModelWeights> bind_weights(const Checkpoint& checkpoint);

}  // namespace lily
