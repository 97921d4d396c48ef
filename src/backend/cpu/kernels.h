// The CPU's inner loops, one table for each instruction set, all compiled from kernels_impl.h.
//
// Names of sizes: `lanes` floats make a vector. All strides are in elements. Nothing here allocates or knows threads.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace lily::cpu {

// Rows of a 4- or 8-bit matrix with group size 64 and bf16 scales, the published form. Files may align data to single
// bytes.
struct QuantizedRows {
  const uint8_t* codes;   // [rows, bits * cols / 8], first code in the low bits
  const uint8_t* scales;  // [rows, cols / 64] bf16
  const uint8_t* biases;  // [rows, cols / 64] bf16
  int64_t rows;
  int64_t cols;
};

// One row of an affine-quantised matrix: codes packed LSB first; see WeightMatrix.
struct AffineRow {
  const uint8_t* codes;
  const void* scales;
  const void* biases;
  DType scale_dtype;
  int bits;
  int64_t group_size;
  int64_t cols;
};

// Activations as 16-bit integers in two planes of bytes, x = scale * (256 * high + low): what a dot-product instruction
// multiplies with codes. An element is off by at most 2^-16 of its row's largest. Codes go in blocks of 2 * run: the
// even ones of a block, then the odd ones, as two masks unpack them.
struct SplitRows {
  const int8_t *high, *low;  // [tokens, cols], a row every `stride` bytes
  const float* scales;       // [tokens]
  const float* sums;         // [tokens, cols / 64]: of x / scale over each group of 64
  int64_t tokens, cols, stride;
};

// What the same thread will read next.
struct Upcoming {
  static constexpr int ranges = 3;
  const uint8_t* data[ranges] = {};
  int64_t bytes[ranges] = {};
};

// The products of the fast path: 4-bit codes with split activations. Whole groups are summed in integers.
struct SplitKernels {
  int64_t gemv_run;  // the run that `gemv` wants; cols must be a multiple of 2 * run. `gemm` wants 32
  void (*split)(const float* x, int64_t cols, int64_t run, int8_t* high, int8_t* low, float* scale, float* sums);

  // out[t * stride + r] = dot(w[r], x[t]). `gemv` unpacks in registers, for few tokens; `gemm` packs panels of 16 rows
  // in scratch (aligned to 64 bytes), and takes a multiple of 16 rows. Both fetch what comes next into the second-level
  // cache beside their work.
  void (*gemv)(const QuantizedRows& w, const SplitRows& x, const Upcoming& next, float* out, int64_t stride);
  int64_t (*gemm_scratch)(int64_t rows, int64_t cols);  // bytes
  void (*gemm)(const QuantizedRows& w, const SplitRows& x, const Upcoming& next, uint8_t* scratch, float* out,
               int64_t stride);
};

// Keys lie in groups, so that a vector holds one dimension of several keys.
constexpr int64_t key_group = 16;
// Attention works on this many keys at a time: their values stay in the first-level cache.
constexpr int64_t attention_part = 64;

// A query of attention and its running softmax over the keys seen so far (Milakov, Gimelshein, arXiv 1805.02867).
struct AttentionQuery {
  const float* q;   // [head_dim], already scaled
  float* sum;       // [head_dim]: sum of exp(score - max) * value
  float max;        // of the scores
  float total;      // sum of exp(score - max)
  int64_t visible;  // how many of the block's keys this query may see
};

// Some channels of a short convolution: weights and inputs [taps, channels], rows a stride apart.
struct Convolution {
  const float* w;
  int64_t w_stride;
  const float* in;
  int64_t in_stride;
};

// T steps of the gated delta rule for one value head, in place on `state` [key_dim, value_dim].
struct DeltaRule {
  float* state;
  const float *q, *k, *v;     // token t at + t * stride; q and k normalised
  const float *decay, *beta;  // token t at + t * gate_stride
  float* out;                 // token t at + t * out_stride, [value_dim]
  int64_t stride, gate_stride, out_stride;
  int64_t tokens;
  int key_dim, value_dim;
};

struct Kernels {
  const char* isa;
  const SplitKernels* split;  // null: the instruction set multiplies no bytes
  int lanes;
  int tile_rows, tile_tokens;  // of the register tile of matmul_tile

  void (*dequantize_row)(const AffineRow& row, float* out);
  void (*widen)(const void* in, DType dtype, int64_t n, float* out);  // f32, f16 or bf16 -> f32

  // out[t][r] = dot(w[r], x[t]) for w [rows, cols] f32 and tokens <= tile_tokens.
  void (*matmul_tile)(const float* w, int64_t rows, int64_t cols, const float* const* x, int64_t tokens,
                      float* const* out);

  // x [cols] in the order that 4-bit words are unpacked in (cols a multiple of 8 * lanes), and its sums by 64.
  void (*prepare_q4)(const float* x, int64_t cols, float* planar, float* sums);
  // out[r] = dot(w[r], x), dequantised in registers.
  void (*gemv_q4)(const QuantizedRows& w, const float* planar, const float* sums, float* out);

  void (*gemv_q8)(const QuantizedRows& w, const float* x, float* out);

  float (*dot)(const float* a, const float* b, int64_t n);
  void (*add)(float* x, const float* y, int64_t n);                      // x += y
  void (*add_scaled)(float* x, const float* y, float scale, int64_t n);  // x += scale * y
  void (*rms_norm)(const float* x, const float* w, float eps, int64_t n, float* out);
  void (*silu_multiply)(const float* gate, const float* x, int64_t n, float* out);  // silu(gate) * x
  void (*sigmoid_multiply)(const float* gate, int64_t n, float* x);                 // x *= sigmoid(gate)

  // out[c] = silu(sum over j of w[j, c] * in[j, c]).
  void (*convolve)(const Convolution& c, int taps, int64_t channels, float* out);
  void (*delta_rule)(const DeltaRule& rule, int first_column, int columns);  // of value_dim
  // `count` keys [count / key_group, head_dim, key_group] and values [count, head_dim], f32 or bf16, for several
  // queries. The keys' memory goes on to a multiple of attention_part. scores: scratch [queries, attention_part].
  void (*attend)(const void* keys, const void* values, DType dtype, int64_t count, int head_dim,
                 AttentionQuery* queries, int64_t num_queries, float* scores);
};

// Names for select_kernels, best first.
inline constexpr const char* isa_names[] = {"amx", "avx512", "avx2", "neon", "portable"};

// The best table that this machine can run, or the named one;
// nullptr when the name is unknown or the machine cannot run it.
const Kernels* select_kernels(const char* isa = "");

}  // namespace lily::cpu
