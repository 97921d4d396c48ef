// The kernels' one source. A kernels_<isa>.cpp sets LILY_ISA, LILY_LANES and the register tile, is compiled with that
// instruction set's flags, and includes this file. No standard library function that might be emitted out of line is
// used here: the linker could hand another file a copy built for instructions that the machine lacks.
#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

#include "backend/cpu/kernels.h"

namespace lily::cpu::LILY_ISA {
namespace {

#include "backend/cpu/prefetch_impl.h"
#include "backend/cpu/simd.h"

constexpr int tile_rows = LILY_TILE_ROWS;
constexpr int tile_tokens = LILY_TILE_TOKENS;

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- elementwise --------------------------------------------------------------------------------------------------

// Calls body(offset, get, put) for whole vectors, then once for what is left.
template <class Body>
inline void for_vectors(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    body(
        i, [](const float* p) { return load(p); }, [](float* p, F32 v) { store(p, v); });
  }
  if (const int64_t rest = n - i; rest > 0) {
    body(
        i, [rest](const float* p) { return load_partial(p, rest); },
        [rest](float* p, F32 v) { store_partial(p, v, rest); });
  }
}

float dot(const float* a, const float* b, int64_t n) {
  F32 total = {};
  for_vectors(n, [&](int64_t i, auto get, auto) { total += get(a + i) * get(b + i); });
  return sum(total);
}

void add(float* x, const float* y, int64_t n) {
  for_vectors(n, [&](int64_t i, auto get, auto put) { put(x + i, get(x + i) + get(y + i)); });
}

void add_scaled(float* x, const float* y, float scale, int64_t n) {
  for_vectors(n, [&](int64_t i, auto get, auto put) { put(x + i, get(x + i) + scale * get(y + i)); });
}

void rms_norm(const float* x, const float* w, float eps, int64_t n, float* out) {
  const float mean_square = dot(x, x, n) / static_cast<float>(n);
  const float scale = 1.0f / __builtin_sqrtf(mean_square + eps);
  for_vectors(n, [&](int64_t i, auto get, auto put) { put(out + i, get(x + i) * scale * get(w + i)); });
}

void silu_multiply(const float* gate, const float* x, int64_t n, float* out) {
  for_vectors(n, [&](int64_t i, auto get, auto put) {
    const F32 g = get(gate + i);
    put(out + i, g * sigmoid(g) * get(x + i));
  });
}

void sigmoid_multiply(const float* gate, int64_t n, float* x) {
  for_vectors(n, [&](int64_t i, auto get, auto put) { put(x + i, get(x + i) * sigmoid(get(gate + i))); });
}

// ---- weights to float32 -------------------------------------------------------------------------------------------

float half_to_float(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  return bit_cast<float>(sign | bit_cast<uint32_t>(bit_cast<float>(magnitude << 13) * 0x1p112f));
}

float element_at(const void* data, DType dtype, int64_t i) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  switch (dtype) {
    case DType::f32: return load_as<float>(bytes + 4 * i);
    case DType::f16: return half_to_float(load_as<uint16_t>(bytes + 2 * i));
    default: return bit_cast<float>(uint32_t{load_as<uint16_t>(bytes + 2 * i)} << 16);
  }
}

void widen(const void* in, DType dtype, int64_t n, float* out) {
  if (dtype == DType::f32) return static_cast<void>(__builtin_memcpy(out, in, 4 * n));
  int64_t i = 0;
  if (dtype == DType::bf16) {
    const auto* bytes = static_cast<const uint8_t*>(in);
    for (; i + lanes <= n; i += lanes) store(out + i, widen_bf16(load_as<U16>(bytes + 2 * i)));
  }
  for (; i < n; ++i) out[i] = element_at(in, dtype, i);
}

// Unpacks 32 codes of `Bits` bits, LSB first, to bytes.
template <int Bits>
inline void unpack_32(const uint8_t* in, uint8_t* out) {
  constexpr uint64_t mask = (1u << Bits) - 1;
  for (int eight = 0; eight < 4; ++eight) {  // 8 codes fill Bits bytes
    uint64_t word = 0;
    __builtin_memcpy(&word, in + eight * Bits, Bits);
    for (int i = 0; i < 8; ++i) out[eight * 8 + i] = static_cast<uint8_t>(word >> (Bits * i) & mask);
  }
}

template <>
inline void unpack_32<4>(const uint8_t* in, uint8_t* out) {
  typedef uint8_t Bytes __attribute__((vector_size(16)));
  const Bytes packed = load_as<Bytes>(in);
  const Bytes even = packed & 15, odd = packed >> 4;
  const Bytes low = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Bytes high = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  __builtin_memcpy(out, &low, 16);
  __builtin_memcpy(out + 16, &high, 16);
}

template <int Bits>
void dequantize_bits(const AffineRow& row, float* out) {
  const uint8_t* packed = row.codes;
  for (int64_t group = 0; group < row.cols / row.group_size; ++group) {
    const float scale = element_at(row.scales, row.scale_dtype, group);
    const float bias = element_at(row.biases, row.scale_dtype, group);
    for (int64_t run = 0; run < row.group_size; run += 32) {  // a group holds whole runs of 32
      alignas(32) uint8_t codes[32];
      unpack_32<Bits>(packed, codes);
      for (int i = 0; i < 32; i += lanes) store(out + i, to_float(widen_bytes(load_as<U8>(codes + i))) * scale + bias);
      packed += 4 * Bits;
      out += 32;
    }
  }
}

void dequantize_row(const AffineRow& row, float* out) {
  switch (row.bits) {
    case 2: return dequantize_bits<2>(row, out);
    case 3: return dequantize_bits<3>(row, out);
    case 4: return dequantize_bits<4>(row, out);
    case 5: return dequantize_bits<5>(row, out);
    case 6: return dequantize_bits<6>(row, out);
    default: return dequantize_bits<8>(row, out);
  }
}

// ---- matrix products ----------------------------------------------------------------------------------------------

// R rows x T tokens held in registers while the columns stream by.
template <int R, int T>
void register_tile(const float* w, int64_t cols, const float* const* x, float* const* out, int64_t row) {
  F32 acc[R][T] = {};
  w += row * cols;
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) {
    F32 wv[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) wv[r] = load(w + r * cols + c);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const F32 xv = load(x[t] + c);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r][t] += wv[r] * xv;
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      float total = sum(acc[r][t]);
      for (int64_t i = c; i < cols; ++i) total += w[r * cols + i] * x[t][i];
      out[t][row + r] = total;
    }
  }
}

template <int T>
void matmul_rows(const float* w, int64_t rows, int64_t cols, const float* const* x, float* const* out) {
  int64_t row = 0;
  for (; row + tile_rows <= rows; row += tile_rows) register_tile<tile_rows, T>(w, cols, x, out, row);
  for (; row < rows; ++row) register_tile<1, T>(w, cols, x, out, row);
}

template <int T = tile_tokens>
void matmul_tokens(const float* w, int64_t rows, int64_t cols, const float* const* x, int64_t tokens,
                   float* const* out) {
  if (tokens == T) return matmul_rows<T>(w, rows, cols, x, out);
  if constexpr (T > 1) matmul_tokens<T - 1>(w, rows, cols, x, tokens, out);
}

void matmul_tile(const float* w, int64_t rows, int64_t cols, const float* const* x, int64_t tokens, float* const* out) {
  matmul_tokens(w, rows, cols, x, tokens, out);
}

// Word `lane` of a vector of words holds elements 8 lane .. 8 lane + 7; shifting all words by 4 j gives element j of
// each. So x is laid out [block][j][lane].
void prepare_q4(const float* x, int64_t cols, float* planar, float* sums) {
  for (int64_t block = 0; block < cols; block += 8 * lanes) {
    for (int j = 0; j < 8; ++j) {
      for (int lane = 0; lane < lanes; ++lane) planar[block + j * lanes + lane] = x[block + 8 * lane + j];
    }
  }
  for (int64_t group = 0; group < cols / 64; ++group) {
    F32 total = {};
    for (int i = 0; i < 64; i += lanes) total += load(x + group * 64 + i);
    sums[group] = sum(total);
  }
}

// The scales of the groups that a vector of words starting at `word` lies in, lane by lane (8 words a group).
inline F32 word_scales(const uint8_t* scales, int64_t word) {
#if LILY_LANES == 16
  uint32_t pair;
  __builtin_memcpy(&pair, scales + word / 8 * 2, 4);
  const U32 shift = {16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0};
  return bit_cast<F32>(((pair - U32{}) << shift) & 0xffff0000u);
#else
  return splat(element_at(scales, DType::bf16, word / 8));
#endif
}

float gemv_q4_row(const uint8_t* codes, const uint8_t* scales, const uint8_t* biases, int64_t cols, const float* planar,
                  const float* sums) {
  F32 total = {};
  for (int64_t word = 0; word < cols / 8; word += lanes) {
    const U32 packed = load_as<U32>(codes + word * 4);
    const float* x = planar + word * 8;
    F32 even = {}, odd = {};  // two chains hide the latency of the additions
#pragma GCC unroll 8
    for (int j = 0; j < 8; j += 2) {
      even += to_float(packed >> (4 * j) & 15) * load(x + j * lanes);
      odd += to_float(packed >> (4 * j + 4) & 15) * load(x + (j + 1) * lanes);
    }
    total += (even + odd) * word_scales(scales, word);
  }
  int64_t group = 0;
  for (; group + lanes <= cols / 64; group += lanes) {
    total += widen_bf16(load_as<U16>(biases + 2 * group)) * load(sums + group);
  }
  float rest = 0;
  for (; group < cols / 64; ++group) rest += element_at(biases, DType::bf16, group) * sums[group];
  return sum(total) + rest;
}

void gemv_q4(const QuantizedRows& w, const float* planar, const float* sums, float* out) {
  for (int64_t r = 0; r < w.rows; ++r) {
    out[r] = gemv_q4_row(w.codes + r * (w.cols / 2), w.scales + r * (w.cols / 32), w.biases + r * (w.cols / 32), w.cols,
                         planar, sums);
  }
}

void gemv_q8(const QuantizedRows& w, const float* x, float* out) {
  constexpr int vectors = 64 / lanes;
  const int64_t groups = w.cols / 64;
  for (int64_t r = 0; r < w.rows; ++r) {
    F32 totals[vectors] = {};  // apart, so that no addition waits for the one before
    for (int64_t group = 0; group < groups; ++group) {
      const float scale = element_at(w.scales, DType::bf16, r * groups + group);
      const float bias = element_at(w.biases, DType::bf16, r * groups + group);
      const uint8_t* codes = w.codes + r * w.cols + group * 64;
      __builtin_prefetch(codes + 2048, 0, 2);
#pragma GCC unroll 16
      for (int i = 0; i < vectors; ++i) {
        const F32 weights = to_float(widen_bytes(load_as<U8>(codes + i * lanes))) * scale + bias;
        totals[i] += weights * load(x + group * 64 + i * lanes);
      }
    }
    for (int i = 1; i < vectors; ++i) totals[0] += totals[i];
    out[r] = sum(totals[0]);
  }
}

#ifdef LILY_INTEGER_DOT
#include "backend/cpu/split_impl.h"
#endif
#ifdef __AMX_INT8__
#include "backend/cpu/amx_impl.h"
#endif

#include "backend/cpu/sequence_impl.h"

}  // namespace

extern const Kernels kernels;
const Kernels kernels = {
    .isa = LILY_ISA_NAME,
#if defined(__AMX_INT8__)
    .split = &amx_split_kernels,
#elif defined(LILY_INTEGER_DOT)
    .split = &split_kernels,
#else
    .split = nullptr,
#endif
    .lanes = lanes,
    .tile_rows = tile_rows,
    .tile_tokens = tile_tokens,
    .dequantize_row = dequantize_row,
    .widen = widen,
    .matmul_tile = matmul_tile,
    .prepare_q4 = prepare_q4,
    .gemv_q4 = gemv_q4,
    .gemv_q8 = gemv_q8,
    .dot = dot,
    .add = add,
    .add_scaled = add_scaled,
    .rms_norm = rms_norm,
    .silu_multiply = silu_multiply,
    .sigmoid_multiply = sigmoid_multiply,
    .convolve = convolve,
    .delta_rule = delta_rule,
    .attend = attend,
};

}  // namespace lily::cpu::LILY_ISA
