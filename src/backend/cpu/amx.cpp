// SplitKernels::gemm on the tile registers of Intel's AMX: one instruction multiplies 16 tokens with 16 rows over a
// whole group of 64 codes. The groups' scales differ, so each product leaves the tiles and is added as float32.
#include "backend/cpu/amx.h"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lily::cpu {
namespace {

#include "backend/cpu/prefetch_impl.h"

constexpr int tile_tokens = 16, panel_rows = 16, group_size = 64;
constexpr int group_bytes = panel_rows * group_size;

// Tiles 0..3 are products [tokens, 16 rows] int32: of the high and low planes with two panels. 4 and 5 are the planes
// [tokens, 64], 6 and 7 the panels' codes [16 steps, 64].
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16];

  explicit TileConfig(int tokens) : rows{} {
    for (int tile = 0; tile < 8; ++tile) rows[tile] = static_cast<uint8_t>(tile < 6 ? tokens : 16);
  }
};

// The integer products of one group: [high | low][panel][tokens, 16 rows].
struct alignas(64) GroupProducts {
  int32_t of[2][2][tile_tokens][panel_rows];
};

void multiply_group(const uint8_t* codes0, const uint8_t* codes1, const int8_t* high, const int8_t* low, int64_t stride,
                    GroupProducts& products) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(6, codes0, 64);
  _tile_loadd(7, codes1, 64);
  _tile_loadd(4, high, stride);
  _tile_loadd(5, low, stride);
  _tile_dpbsud(0, 4, 6);
  _tile_dpbsud(1, 4, 7);
  _tile_dpbsud(2, 5, 6);
  _tile_dpbsud(3, 5, 7);
  _tile_stored(0, products.of[0][0], 64);
  _tile_stored(1, products.of[0][1], 64);
  _tile_stored(2, products.of[1][0], 64);
  _tile_stored(3, products.of[1][1], 64);
}

// totals += scale * (256 * high + low) + bias * sum
template <int tokens>
inline void add_group(const GroupProducts& products, int panel, const float* scales, const float* biases,
                      const float* sums, int64_t groups, float (*totals)[panel_rows]) {
  const __m512 scale = _mm512_loadu_ps(scales), bias = _mm512_loadu_ps(biases);
#pragma GCC unroll 16
  for (int t = 0; t < tokens; ++t) {
    const __m512i high = _mm512_load_si512(products.of[0][panel][t]);
    const __m512i product =
        _mm512_add_epi32(_mm512_maskz_slli_epi32(0xffff, high, 8), _mm512_load_si512(products.of[1][panel][t]));
    const __m512 with_bias = _mm512_fmadd_ps(bias, _mm512_set1_ps(sums[t * groups]), _mm512_load_ps(totals[t]));
    _mm512_store_ps(totals[t], _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(0xffff, product), scale, with_bias));
  }
}

// Up to 16 tokens with two panels. With one panel the second is the first again, and not stored.
template <int tokens>
void multiply_pair(const Panels& w, int64_t panel, const SplitRows& x, int64_t token, Prefetcher& prefetcher,
                   float* out, int64_t stride) {
  const int64_t groups = w.cols / group_size;
  const int count = panel + 1 < w.count ? 2 : 1;
  const uint8_t* codes = w.codes + panel * panel_rows * w.cols;
  const uint8_t* codes1 = codes + (count - 1) * panel_rows * w.cols;
  alignas(64) float totals[2][tile_tokens][panel_rows] = {};
  GroupProducts products[2];  // of the group in the tiles, and of the one before
  for (int64_t group = 0; group <= groups; ++group) {
    if (group < groups) {
      const int64_t at = token * x.stride + group * group_size;
      multiply_group(codes + group * group_bytes, codes1 + group * group_bytes, x.high + at, x.low + at, x.stride,
                     products[group % 2]);
    }
    if (group == 0) continue;
    prefetcher.step();
    for (int p = 0; p < count; ++p) {
      const int64_t at = ((panel + p) * groups + group - 1) * panel_rows;
      add_group<tokens>(products[(group - 1) % 2], p, w.scales + at, w.biases + at, x.sums + token * groups + group - 1,
                        groups, totals[p]);
    }
  }
  for (int p = 0; p < count; ++p) {
    for (int t = 0; t < tokens; ++t) {
      _mm512_storeu_ps(out + (token + t) * stride + (panel + p) * panel_rows,
                       _mm512_mul_ps(_mm512_load_ps(totals[p][t]), _mm512_set1_ps(x.scales[token + t])));
    }
  }
}

// All panels with `n` tokens, for n <= tokens.
template <int tokens = tile_tokens>
void multiply_tokens(const Panels& w, const SplitRows& x, int64_t token, int64_t n, Prefetcher& prefetcher, float* out,
                     int64_t stride) {
  if (n == tokens) {
    const TileConfig config(tokens);
    _tile_loadconfig(&config);
    for (int64_t panel = 0; panel < w.count; panel += 2)
      multiply_pair<tokens>(w, panel, x, token, prefetcher, out, stride);
  } else if constexpr (tokens > 1) {
    multiply_tokens<tokens - 1>(w, x, token, n, prefetcher, out, stride);
  }
}

}  // namespace

void gemm_amx(const Panels& w, const SplitRows& x, const Upcoming& next, float* out, int64_t stride) {
  const int64_t token_tiles = (x.tokens + tile_tokens - 1) / tile_tokens;
  Prefetcher prefetcher(next, token_tiles * ((w.count + 1) / 2) * (w.cols / group_size));
  for (int64_t token = 0; token < x.tokens; token += tile_tokens) {
    const int64_t n = x.tokens - token < tile_tokens ? x.tokens - token : tile_tokens;
    multiply_tokens(w, x, token, n, prefetcher, out, stride);
  }
  _tile_release();
}

bool enable_amx() {
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

}  // namespace lily::cpu
