// The arguments of the kernels, shared by host and device, and what their buffers hold. Sizes are in elements.
//
// Names of sizes: n tokens (rows of a chunk, or sequences of a decode batch), H hidden, E experts, S slots of a token (its
// experts_per_token routed experts, then the parts of the shared one), W expert width, D = 256 head_dim, K = V = 128 key and
// value dimensions of a linear-attention head.
//
// A matrix [rows, cols] is three buffers: codes (uint, rows * cols * bits / 32, LSB first along a row), scales and biases
// (bf16 [rows, cols / group_size]); weight = code * scale + bias. bits 16: codes are bf16 weights and there are no scales.
#pragma once

namespace lily::kernels {

using uint = unsigned int;

constexpr uint head_dim = 256;         // of full attention
constexpr uint linear_dim = 128;       // of a linear-attention head: keys and values
constexpr uint conv_taps = 4;          // of the causal convolution
constexpr uint kv_block_tokens = 256;  // of a block of the KV pool
constexpr uint rope_low = 1024;        // positions of the finer of the two RoPE tables
constexpr uint max_experts = 512;      // of a layer
constexpr uint max_slots = 32;         // of a token
constexpr uint max_candidates = 64;    // that sampling looks at
constexpr uint max_splits = 256;       // of a context (decode)

// What a decode step reads and leaves of one sequence.
struct SequenceStep {
  uint position;  // tokens before this step (decode) or chunk (prefill)
  uint token;     // to be computed next (decode)
};

struct PeakArgs {
  uint loops;
};

struct EmbedArgs {
  uint rows;  // n
  uint cols;  // H
  uint group_size;
  uint vocab;
};

struct NormArgs {
  uint cols;
  float eps;
};

// y[n, rows] = W x
struct GemvArgs {
  uint rows;
  uint cols;
  uint group_size;
  float eps;       // of the norm, where x is normalised first
  uint simd_rows;  // of a simdgroup in a pass, 1 to 4
  uint passes;     // of a threadgroup: 8 * simd_rows rows each
};

// y[t * y_stride + r] for r < rows: x[t, cols] . W[first_row + r, cols]
struct GemmArgs {
  uint n;
  uint rows;
  uint first_row;
  uint cols;
  uint group_size;
  uint y_stride;
  uint output;  // GemmOutput
};
enum GemmOutput : uint { gemm_store_bf16 = 0, gemm_store_f32 = 1, gemm_add_f32 = 2 };

// The projections of a linear-attention layer lie side by side in a row of `stride` elements:
// q [key_heads, K] | k [key_heads, K] | v [value_heads, V] | z [value_heads, V] | b [value_heads] | a [value_heads]
struct DeltaArgs {
  uint n;
  uint key_heads;
  uint value_heads;
  uint stride;       // of a row of projections
  uint gate_stride;  // of a row of the gates' projections, where they have a buffer of their own: b | a
  float eps;
};

// The projections of a full-attention layer: [heads, query | gate, D] | k [kv_heads, D] | v [kv_heads, D].
// KV pool: block b of this layer starts at element (b * kv_layers + kv_layer) * 2 * kv_heads * kv_block_tokens * D:
// keys [kv_heads, kv_block_tokens, D], then values, in bf16. blocks[i] is the block of tokens [256 i, 256 i + 256).
struct AttentionArgs {
  uint n;
  uint heads;
  uint kv_heads;
  uint stride;  // of a row of projections
  uint kv_layers;
  uint kv_layer;
  uint rotary_dim;
  uint splits;  // of the context (decode); 1: the kernel writes the result itself
  float eps;
};

struct MoeArgs {
  uint n;
  uint hidden;
  uint experts;       // routed ones; the parts of the shared expert follow them in the weights
  uint top_k;         // routed slots of a token
  uint shared_parts;  // slots after them, all of the same weight: sigmoid of the shared gate
  uint width;         // W
  uint group_size;    // of the gate and up matrices
  uint down_group_size;
  uint logits_stride;  // of a row of router logits: experts, then the shared gate's
  float eps;
};

// Rows of the grouped product: pairs (token, slot) sorted by expert, each expert's in ascending order.
struct GroupArgs {
  uint n;
  uint slots;      // S
  uint groups;     // experts and shared parts
  uint tile_rows;  // rows of a block of the map
};

struct GroupedGemmArgs {
  uint rows;  // of one expert's matrix
  uint cols;
  uint group_size;
  uint slots;  // of a token; pair / slots is the row of x, where x is by token
};

// The plain forms of kernels/unfused.h.
struct DequantizeArgs {
  uint first_unit;  // of 32 columns, through the whole matrix
  uint units;
  uint group_size;
};
struct ProductArgs {
  uint rows;  // of one expert's matrix
  uint cols;
  uint group_size;
  uint slots;
  uint x_by_slot;  // 1: a row of x for each (token, slot); 0: one for each token
};
struct CountArgs {
  uint count;
};

struct CombineArgs {
  uint n;
  uint hidden;
  uint slots;
};

struct SampleArgs {
  uint vocab;       // ids that may be sampled
  uint candidates;  // kept of each part and in all: top-k; 1: greedy
  uint parts;       // that the vocabulary is cut into
  float temperature;
  float top_p;
  float min_p;
  uint seed_low, seed_high;
};

}  // namespace lily::kernels
