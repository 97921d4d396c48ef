// SplitKernels::gemm on the tile registers of AMX: one instruction multiplies 16 tokens with 16 rows over 64 codes.
// Included by kernels_impl.h where the instruction set has them.
//
// With few tokens the tiles multiply the codes as they are. The groups' scales differ, so each group's product leaves the
// tiles and is added as float32, which takes longer than the product. With many tokens the weights are first made
// 16-bit integers with one scale a row, in two planes of bytes like the activations: packing takes three times as long,
// but sums stay in the tiles for a whole row.

constexpr int tile_tokens_amx = 16;
// From four tiles of tokens on, packing 16-bit weights is paid back.
constexpr int64_t min_wide_tokens = 64;

int64_t token_tiles(int64_t tokens) { return (tokens + tile_tokens_amx - 1) / tile_tokens_amx; }

// Tiles 0..3 are sums [tokens, 16 rows] int32; 4 and 5 the planes of activations [tokens, 64]; 6 and 7 are panels
// [16 steps, 64].
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16];

  explicit TileConfig(int64_t tokens) : rows{} {
    for (int tile = 0; tile < 8; ++tile) rows[tile] = static_cast<uint8_t>(tile < 6 ? tokens : 16);
  }
};

// GCC 12 knows neither that ldtilecfg reads the whole of its operand nor that tileloadd reads memory at all: it would drop
// stores to the one and might move stores behind the other.
inline void load_config(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
inline void finish_stores() { asm volatile("" : : : "memory"); }

// Four tiles as they leave the registers.
struct alignas(64) TileSums {
  int32_t of[4][tile_tokens_amx][panel_rows];

  void store() {
    _tile_stored(0, of[0], 64);
    _tile_stored(1, of[1], 64);
    _tile_stored(2, of[2], 64);
    _tile_stored(3, of[3], 64);
  }
};

inline void zero_tiles() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// ---- few tokens: codes --------------------------------------------------------------------------------------------

// One group's codes of two panels, as long as they are in use.
struct alignas(64) GroupCodes {
  uint8_t of[2][group_bytes];
};

// Sums 0 and 1: the high plane with two panels; 2 and 3: the low plane.
inline void multiply_group(const GroupCodes& codes, const int8_t* high, const int8_t* low, int64_t stride,
                           TileSums& sums) {
  finish_stores();
  zero_tiles();
  _tile_loadd(6, codes.of[0], 64);
  _tile_loadd(7, codes.of[1], 64);
  _tile_loadd(4, high, stride);
  _tile_loadd(5, low, stride);
  _tile_dpbsud(0, 4, 6);
  _tile_dpbsud(1, 4, 7);
  _tile_dpbsud(2, 5, 6);
  _tile_dpbsud(3, 5, 7);
  sums.store();
}

// totals += scale * (256 * high + low) + bias * sum
template <int tokens>
inline void add_scaled_group(const TileSums& products, int panel, const float* scales, const float* biases,
                             const float* sums, int64_t groups, float (*totals)[panel_rows]) {
  const F32 scale = load(scales), bias = load(biases);
#pragma GCC unroll 16
  for (int t = 0; t < tokens; ++t) {
    const I32 product = (load_as<I32>(products.of[panel][t]) << 8) + load_as<I32>(products.of[2 + panel][t]);
    const F32 total = load(totals[t]) + bias * sums[t * groups];
    store(totals[t], total + __builtin_convertvector(product, F32) * scale);
  }
}

// Up to 16 tokens with two panels of rows (or one: `count`), whose codes are packed group by group just before their
// use: they never leave the first-level cache. scales, biases: [panels, groups, 16 rows].
template <int tokens>
void multiply_pair(const QuantizedRows& w, int count, const float* scales, const float* biases, const SplitRows& x,
                   int64_t token, Prefetcher& prefetcher, float* out, int64_t stride) {
  const int64_t groups = w.cols / group_size, row_bytes = w.cols / 2;
  alignas(64) float totals[2][tile_tokens_amx][panel_rows] = {};
  GroupCodes codes[2];
  TileSums products[2];  // of the group in the tiles, and of the one before
  for (int64_t group = 0; group <= groups; ++group) {
    if (group < groups) {
      const int64_t at = token * x.stride + group * group_size;
      for (int p = 0; p < count; ++p) {
        pack_group(w.codes + p * panel_rows * row_bytes + group * 32, row_bytes, codes[group % 2].of[p]);
      }
      multiply_group(codes[group % 2], x.high + at, x.low + at, x.stride, products[group % 2]);
    }
    if (group == 0) continue;
    prefetcher.step();
    for (int p = 0; p < count; ++p) {
      const int64_t at = (p * groups + group - 1) * panel_rows;
      add_scaled_group<tokens>(products[(group - 1) % 2], p, scales + at, biases + at,
                               x.sums + token * groups + group - 1, groups, totals[p]);
    }
  }
  for (int p = 0; p < count; ++p) {
    for (int t = 0; t < tokens; ++t) {
      store(out + (token + t) * stride + p * panel_rows, load(totals[p][t]) * x.scales[token + t]);
    }
  }
}

template <int tokens = tile_tokens_amx>
void multiply_tokens(const QuantizedRows& w, int count, const float* scales, const float* biases, const SplitRows& x,
                     int64_t token, int64_t n, Prefetcher& prefetcher, float* out, int64_t stride) {
  if (n == tokens) {
    const TileConfig config(tokens);
    load_config(config);
    multiply_pair<tokens>(w, count, scales, biases, x, token, prefetcher, out, stride);
  } else if constexpr (tokens > 1) {
    multiply_tokens<tokens - 1>(w, count, scales, biases, x, token, n, prefetcher, out, stride);
  }
}

void gemm_codes(const QuantizedRows& w, const SplitRows& x, const Upcoming& next, uint8_t* scratch, float* out,
                int64_t stride) {
  const int64_t groups = w.cols / group_size, panels = w.rows / panel_rows;
  const int64_t row_bytes = w.cols / 2, scale_bytes = groups * 2;
  float* scales = reinterpret_cast<float*>(scratch);
  float* biases = scales + 2 * groups * panel_rows;
  Prefetcher prefetcher(next, token_tiles(x.tokens) * ((panels + 1) / 2) * groups);
  for (int64_t panel = 0; panel < panels; panel += 2) {
    const int count = panel + 1 < panels ? 2 : 1;
    const int64_t row = panel * panel_rows;
    for (int p = 0; p < count; ++p) {
      const int64_t from = (row + p * panel_rows) * scale_bytes, to = p * groups * panel_rows;
      pack_scales(w.scales + from, groups, 0, scales + to);
      pack_scales(w.biases + from, groups, 0, biases + to);
    }
    const QuantizedRows rows = {w.codes + row * row_bytes, nullptr, nullptr, count * panel_rows, w.cols};
    for (int64_t token = 0; token < x.tokens; token += tile_tokens_amx) {
      multiply_tokens(rows, count, scales, biases, x, token, smaller(tile_tokens_amx, x.tokens - token), prefetcher,
                      out + row, stride);
    }
  }
}

// ---- many tokens: 16-bit weights ----------------------------------------------------------------------------------

// Weights as w = scale * (256 * high + low), 16 rows a panel: [panels, cols / 64, 2 planes, 16 steps, 16 rows, 4].
struct WidePanels {
  int8_t* planes;
  float* scales;  // [panels, 16 rows]
  int64_t count, cols;
};

// The bytes of the four steps' values, each 16 bits with 128 added: [steps low bytes], [steps high bytes].
inline void store_wide(const I32 (&values)[4], int8_t* high, int8_t* low) {
  const I32 a = (values[0] & 0xffff) | values[1] << 16, b = (values[2] & 0xffff) | values[3] << 16;
  // Of each word's two values in a, then in b, the first byte.
  alignas(64) static constexpr uint8_t first[64] = {
      0,  2,  64,  66,  4,  6,  68,  70,  8,  10, 72,  74,  12, 14, 76,  78,  16,  18,  80,  82, 20,  22,
      84, 86, 24,  26,  88, 90, 28,  30,  92, 94, 32,  34,  96, 98, 36,  38,  100, 102, 40,  42, 104, 106,
      44, 46, 108, 110, 48, 50, 112, 114, 52, 54, 116, 118, 56, 58, 120, 122, 60,  62,  124, 126};
  const __m512i even = _mm512_load_si512(first), odd = _mm512_add_epi8(even, _mm512_set1_epi8(1));
  const __m512i lower = _mm512_permutex2var_epi8(bit_cast<__m512i>(a), even, bit_cast<__m512i>(b));
  const __m512i upper = _mm512_permutex2var_epi8(bit_cast<__m512i>(a), odd, bit_cast<__m512i>(b));
  _mm512_store_si512(low, _mm512_xor_si512(lower, _mm512_set1_epi8(-128)));  // takes the 128 off again
  _mm512_store_si512(high, upper);
}

// One panel; `scales` and `biases` [groups, 16 rows] are scratch.
void pack_wide(const QuantizedRows& w, float* scales, float* biases, int8_t* planes, float* row_scales) {
  const int64_t groups = w.cols / group_size;
  pack_scales(w.scales, groups, 0, scales);
  pack_scales(w.biases, groups, 0, biases);
  F32 largest = splat(1e-30f);
  for (int64_t group = 0; group < groups; ++group) {
    const F32 bias = load(biases + group * panel_rows), top = bias + 15.0f * load(scales + group * panel_rows);
    largest = max(max(largest, max(bias, -bias)), max(top, -top));
  }
  store(row_scales, largest / split_limit);
  const F32 inverse = split_limit / largest;
  for (int64_t group = 0; group < groups; ++group, planes += 2 * group_bytes) {
    const F32 scale = load(scales + group * panel_rows) * inverse;
    const F32 bias = load(biases + group * panel_rows) * inverse + 128.0f;
    for (int half = 0; half < 2; ++half) {
      U32 words[4];
      load_words(w.codes + group * 32 + half * 16, w.cols / 2, words);
      for (int i = 0; i < 4; ++i) {
        for (int odd = 0; odd < 2; ++odd) {  // codes 0, 2, 4, 6 of the word, then 1, 3, 5, 7
          I32 values[4];
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) {
            values[j] = round_to_int(to_float(words[i] >> (8 * j + 4 * odd) & 15) * scale + bias);
          }
          int8_t* step = planes + (odd * 8 + half * 4 + i) * 64;
          store_wide(values, step, step + group_bytes);
        }
      }
    }
  }
}

// Sums 0 and 1: high planes of activations with high planes of two panels; 2 and 3: high with low and low with high.
// Low with low is 2^-16 of the result and left out. A sum is added to again only three products later: it takes that
// long until it is there.
inline void multiply_wide(const int8_t* panel0, const int8_t* panel1, const int8_t* high, const int8_t* low,
                          int64_t stride) {
  _tile_loadd(4, high, stride);
  _tile_loadd(6, panel0, 64);
  _tile_dpbssd(0, 4, 6);
  _tile_loadd(5, low, stride);
  _tile_dpbssd(2, 5, 6);
  _tile_loadd(7, panel1, 64);
  _tile_dpbssd(1, 4, 7);
  _tile_dpbssd(3, 5, 7);
  _tile_loadd(6, panel0 + group_bytes, 64);
  _tile_dpbssd(2, 4, 6);
  _tile_loadd(7, panel1 + group_bytes, 64);
  _tile_dpbssd(3, 4, 7);
}

// Up to 16 tokens with two panels; with one panel the second is the first again, and not stored.
void multiply_wide_pair(const WidePanels& w, int64_t panel, const SplitRows& x, int64_t token, int64_t tokens,
                        Prefetcher& prefetcher, float* out, int64_t stride) {
  const int64_t groups = w.cols / group_size, panel_bytes = 2 * panel_rows * w.cols;
  const int count = panel + 1 < w.count ? 2 : 1;
  const int8_t* planes = w.planes + panel * panel_bytes;
  const int8_t* planes1 = planes + (count - 1) * panel_bytes;
  zero_tiles();
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t at = token * x.stride + group * group_size;
    multiply_wide(planes + group * 2 * group_bytes, planes1 + group * 2 * group_bytes, x.high + at, x.low + at,
                  x.stride);
    prefetcher.step();
  }
  TileSums sums;
  sums.store();
  for (int p = 0; p < count; ++p) {
    const F32 scale = load(w.scales + (panel + p) * panel_rows) * 256.0f;
    for (int64_t t = 0; t < tokens; ++t) {
      const F32 high = __builtin_convertvector(load_as<I32>(sums.of[p][t]), F32);
      const F32 mixed = __builtin_convertvector(load_as<I32>(sums.of[2 + p][t]), F32);
      store(out + (token + t) * stride + (panel + p) * panel_rows,
            (high * 256.0f + mixed) * scale * x.scales[token + t]);
    }
  }
}

// In scratch: panels, scales of rows, then scales and biases of one panel's groups.
void gemm_wide(const QuantizedRows& w, const SplitRows& x, const Upcoming& next, uint8_t* scratch, float* out,
               int64_t stride) {
  const int64_t groups = w.cols / group_size, row_bytes = w.cols / 2, scale_bytes = groups * 2;
  const WidePanels panels = {.planes = reinterpret_cast<int8_t*>(scratch),
                             .scales = reinterpret_cast<float*>(scratch + 2 * w.rows * w.cols),
                             .count = w.rows / panel_rows,
                             .cols = w.cols};
  float* scales = panels.scales + w.rows;
  for (int64_t p = 0; p < panels.count; ++p) {
    const int64_t row = p * panel_rows;
    const QuantizedRows rows = {w.codes + row * row_bytes, w.scales + row * scale_bytes, w.biases + row * scale_bytes,
                                panel_rows, w.cols};
    pack_wide(rows, scales, scales + groups * panel_rows, panels.planes + 2 * row * w.cols, panels.scales + row);
  }
  finish_stores();
  Prefetcher prefetcher(next, token_tiles(x.tokens) * ((panels.count + 1) / 2) * groups);
  for (int64_t token = 0; token < x.tokens; token += tile_tokens_amx) {
    const int64_t tokens = smaller(tile_tokens_amx, x.tokens - token);
    const TileConfig config(tokens);
    load_config(config);
    for (int64_t panel = 0; panel < panels.count; panel += 2) {
      multiply_wide_pair(panels, panel, x, token, tokens, prefetcher, out, stride);
    }
  }
}

int64_t gemm_scratch_amx(int64_t rows, int64_t cols) {
  return 2 * rows * cols + 4 * rows + 2 * 2 * 4 * panel_rows * (cols / group_size);  // two panels' scales and biases
}

void gemm_amx(const QuantizedRows& w, const SplitRows& x, const Upcoming& next, uint8_t* scratch, float* out,
              int64_t stride) {
  x.tokens < min_wide_tokens ? gemm_codes(w, x, next, scratch, out, stride)
                             : gemm_wide(w, x, next, scratch, out, stride);
  _tile_release();
}

const SplitKernels amx_split_kernels = {
    .gemv_run = gemv_run, .split = split, .gemv = gemv, .gemm_scratch = gemm_scratch_amx, .gemm = gemm_amx};
