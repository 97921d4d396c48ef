// Products of 4-bit codes with activations split into bytes; see SplitKernels. Included by kernels_impl.h where the
// instruction set has a byte dot product.

constexpr int panel_rows = 16;
constexpr int group_size = 64;
constexpr int group_steps = group_size / 4;
constexpr int group_bytes = group_size * panel_rows;             // of a panel's codes
constexpr int row_vectors = panel_rows / lanes;                  // that hold a panel's rows
constexpr int64_t gemv_run = sizeof(Codes);                      // bytes of a vector hold twice as many codes
constexpr int vectors_tile = row_vectors > 2 ? row_vectors : 2;  // of rows in a register tile of gemm

// ---- activations --------------------------------------------------------------------------------------------------

constexpr float split_limit = 127 * 256 + 127;  // the largest integer of two planes of signed bytes

inline I32 round_to_int(F32 x) {  // |x| < 2^22
  return bit_cast<I32>(x + 12582912.0f) - 0x4b400000;
}

inline void store_bytes(int8_t* to, I32 values) {
  typedef int8_t Narrow __attribute__((vector_size(LILY_LANES)));
  const Narrow narrow = __builtin_convertvector(values, Narrow);
  __builtin_memcpy(to, &narrow, sizeof narrow);
}

inline void store_planes(I32 value, int8_t* high, int8_t* low) {
  const I32 top = (value + 128) >> 8;
  store_bytes(high, top);
  store_bytes(low, value - (top << 8));
}

void split(const float* x, int64_t cols, int64_t run, int8_t* high, int8_t* low, float* scale, float* sums) {
  F32 top = {};
  for (int64_t i = 0; i < cols; i += lanes) top = max(top, max(load(x + i), -load(x + i)));
  float largest = 0;
  for (int i = 0; i < lanes; ++i) largest = top[i] > largest ? top[i] : largest;
  const float inverse = largest > 1e-30f ? split_limit / largest : 0.0f;
  *scale = largest / split_limit;

  for (int64_t block = 0; block < cols; block += 2 * run) {
    for (int64_t i = 0; i < run; i += lanes) {
      const I32 a = round_to_int(load(x + block + 2 * i) * inverse);
      const I32 b = round_to_int(load(x + block + 2 * i + lanes) * inverse);
      store_planes(even_lanes(a, b), high + block + i, low + block + i);
      store_planes(odd_lanes(a, b), high + block + run + i, low + block + run + i);
    }
  }
  for (int64_t group = 0; group < cols / group_size; ++group) {
    I32 total = {};
    for (int i = 0; i < group_size; i += lanes) total += round_to_int(load(x + group * group_size + i) * inverse);
    sums[group] = sum(__builtin_convertvector(total, F32));
  }
}

// ---- few tokens: weights are unpacked in registers ----------------------------------------------------------------

// The scales of the groups that block `block` of a row lies in, lane by lane.
inline F32 block_scales(const uint8_t* scales, int64_t block) {
#if LILY_LANES == 16
  // Two groups a block: each lane of the lower half takes the first two bytes, each of the upper half the others.
  constexpr uint32_t low = 0x01008080, high = 0x03028080;
  const U32 order = {low, low, low, low, low, low, low, low, high, high, high, high, high, high, high, high};
  const __m512i pair = _mm512_set1_epi32(load_as<int32_t>(scales + 4 * block));
  return bit_cast<F32>(_mm512_shuffle_epi8(pair, bit_cast<__m512i>(order)));
#else
  return splat(element_at(scales, DType::bf16, block * 2 * gemv_run / group_size));
#endif
}

// Sum of bias * sum over a row's groups, lane by lane.
inline F32 bias_products(const uint8_t* biases, const float* sums, int64_t groups) {
  F32 total = {};
  int64_t group = 0;
  for (; group + lanes <= groups; group += lanes) {
    total += widen_bf16(load_as<U16>(biases + 2 * group)) * load(sums + group);
  }
  if (const int64_t rest = groups - group; rest > 0) {
    total += widen_bf16(load_halves(biases + 2 * group, rest)) * load_partial(sums + group, rest);
  }
  return total;
}

// What will be read `distance` bytes after what lies at `at` of `size` bytes.
inline const uint8_t* ahead(const uint8_t* data, int64_t at, int64_t size, const uint8_t* next, int64_t next_size,
                            int64_t distance) {
  if (at + distance < size) return data + at + distance;
  return next_size > 0 ? next + (at + distance - size) : data + at;
}

template <int T>
void gemv_rows(const QuantizedRows& w, const SplitRows& x, const Upcoming& next, int64_t token, float* out,
               int64_t stride) {
  const int64_t groups = w.cols / group_size, blocks = w.cols / (2 * gemv_run);
  const int64_t row_bytes = w.cols / 2, scale_bytes = groups * 2;
  for (int64_t r = 0; r < w.rows; ++r) {
    const uint8_t* codes = w.codes + r * row_bytes;
    const uint8_t* scales = w.scales + r * scale_bytes;
    const uint8_t* biases = w.biases + r * scale_bytes;
    // Far enough for the memory to answer in time; half of it was measured slower, and so was twice.
    constexpr int64_t distance = 4096, scale_distance = distance / 16;
    const auto wanted = [&](const uint8_t* data, int range, int64_t bytes, int64_t far) {
      return ahead(data, r * bytes, w.rows * bytes, next.data[range], next.bytes[range], far);
    };
    const uint8_t* wanted_codes = wanted(w.codes, 0, row_bytes, distance);
    __builtin_prefetch(wanted(w.scales, 1, scale_bytes, scale_distance), 0, 2);
    __builtin_prefetch(wanted(w.biases, 2, scale_bytes, scale_distance), 0, 2);
    const int8_t *high[T], *low[T];
    for (int t = 0; t < T; ++t) {
      high[t] = x.high + (token + t) * x.stride;
      low[t] = x.low + (token + t) * x.stride;
    }
    F32 totals[T] = {};
    for (int64_t block = 0; block < blocks; ++block) {
      const Codes packed = load_as<Codes>(codes + block * gemv_run);
      if (block * gemv_run % 64 == 0) {
        __builtin_prefetch(wanted_codes + block * gemv_run, 0, 2);
        __builtin_prefetch(codes + block * gemv_run + 512, 0, 3);
      }
      const Codes even = packed & 15, odd = packed >> 4;
      const F32 scale = block_scales(scales, block);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        const int8_t *h = high[t] + block * 2 * gemv_run, *l = low[t] + block * 2 * gemv_run;
        const Dots upper = dot(dot(Dots{}, even, load_as<Signs>(h)), odd, load_as<Signs>(h + gemv_run));
        const I32 product = dot_planes(upper, even, load_as<Signs>(l), odd, load_as<Signs>(l + gemv_run));
        totals[t] += __builtin_convertvector(product, F32) * scale;
      }
    }
    for (int t = 0; t < T; ++t) {
      const F32 bias = bias_products(biases, x.sums + (token + t) * groups, groups);
      out[(token + t) * stride + r] = sum(totals[t] + bias) * x.scales[token + t];
    }
  }
}

void gemv(const QuantizedRows& w, const SplitRows& x, const Upcoming& next, float* out, int64_t stride) {
  int64_t t = 0;
  for (; t + 4 <= x.tokens; t += 4) gemv_rows<4>(w, x, next, t, out, stride);
  for (; t + 2 <= x.tokens; t += 2) gemv_rows<2>(w, x, next, t, out, stride);
  for (; t < x.tokens; ++t) gemv_rows<1>(w, x, next, t, out, stride);
}

// ---- many tokens: panels of 16 rows -------------------------------------------------------------------------------

// 4-bit rows, 16 a panel: [panels, cols / 64, 16 steps, 16 rows, 4 codes]. The steps of a group are its 8 words' even
// codes, then their odd ones.
struct Panels {
  uint8_t* codes;
  float *scales, *biases;  // [panels, cols / 64, 16 rows]
  int64_t count, cols;
};

// 16 bytes from each of `lanes` rows as four vectors of words, lane = row.
inline void load_words(const uint8_t* rows, int64_t row_bytes, U32 (&words)[4]) {
  U32 quads[4];  // quads[j]: the bytes of rows j, 4 + j, 8 + j, ...
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) quads[j] = load_quads(rows + j * row_bytes, 4 * row_bytes);
  transpose_quads(quads, words);
}

// [rows, groups] bf16 to [groups, rows] float32; `row` is the first of `lanes` rows.
void pack_scales(const uint8_t* scales, int64_t groups, int row, float* out) {
  const uint8_t* rows = scales + row * groups * 2;
  int64_t group = 0;
  for (; group + 8 <= groups; group += 8) {
    U32 words[4];
    load_words(rows + 2 * group, groups * 2, words);
    for (int i = 0; i < 4; ++i) {
      store(out + (group + 2 * i) * panel_rows + row, bit_cast<F32>(words[i] << 16));
      store(out + (group + 2 * i + 1) * panel_rows + row, bit_cast<F32>(words[i] & 0xffff0000u));
    }
  }
  for (; group < groups; ++group) {
    for (int i = 0; i < lanes; ++i) {
      out[group * panel_rows + row + i] = element_at(rows + i * groups * 2, DType::bf16, group);
    }
  }
}

// One group of `lanes` rows; `out` is the group's place in the panel, at the first of those rows.
inline void pack_group(const uint8_t* codes, int64_t row_bytes, uint8_t* out) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    U32 words[4];
    load_words(codes + half * 16, row_bytes, words);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const U32 even = words[i] & 0x0f0f0f0fu, odd = words[i] >> 4 & 0x0f0f0f0fu;
      uint8_t* to = out + (half * 4 + i) * 64;
      __builtin_memcpy(to, &even, sizeof even);
      __builtin_memcpy(to + group_bytes / 2, &odd, sizeof odd);
    }
  }
}

int64_t gemm_scratch(int64_t rows, int64_t cols) { return rows * cols + 8 * rows * cols / group_size; }

Panels pack(const QuantizedRows& w, uint8_t* scratch) {
  const int64_t groups = w.cols / group_size;
  float* scales = reinterpret_cast<float*>(scratch + w.rows * w.cols);
  const Panels panels = {.codes = scratch,
                         .scales = scales,
                         .biases = scales + w.rows * groups,
                         .count = w.rows / panel_rows,
                         .cols = w.cols};
  for (int64_t first = 0; first < w.rows; first += panel_rows) {
    for (int row = 0; row < panel_rows; row += lanes) {
      const uint8_t* codes = w.codes + (first + row) * (w.cols / 2);
      for (int64_t group = 0; group < groups; ++group) {
        pack_group(codes + group * 32, w.cols / 2, panels.codes + first * w.cols + group * group_bytes + row * 4);
      }
      pack_scales(w.scales + first * groups * 2, groups, row, panels.scales + first * groups);
      pack_scales(w.biases + first * groups * 2, groups, row, panels.biases + first * groups);
    }
  }
  return panels;
}

// sums += codes * x of one group, for V vectors of rows and T tokens, all in registers.
template <int V, int T>
inline void add_group(const uint8_t* const (&codes)[V], const int8_t* x, int64_t stride, I32 (&sums)[V][T]) {
  for (int first = 0; first < group_steps; first += dot_steps) {
    Dots dots[V][T] = {};
    for (int step = first; step < group_steps && step < first + dot_steps; ++step) {
      Codes c[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) c[v] = load_as<Codes>(codes[v] + step * 64);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const Signs xt = bit_cast<Signs>(load_as<int32_t>(x + t * stride + 4 * step) - I32{});
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) dots[v][t] = dot(dots[v][t], c[v], xt);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sums[v][t] += total(dots[v][t]);
    }
  }
}

// A register tile of V vectors of rows and T tokens.
template <int V, int T>
void split_tile(const Panels& w, int64_t vector, const SplitRows& x, int64_t token, Prefetcher& prefetcher, float* out,
                int64_t stride) {
  const int64_t groups = w.cols / group_size;
  const uint8_t* codes[V];
  int64_t scales[V];
  for (int v = 0; v < V; ++v) {
    const int64_t panel = (vector + v) / row_vectors, row = (vector + v) % row_vectors * lanes;
    codes[v] = w.codes + panel * panel_rows * w.cols + 4 * row;
    scales[v] = panel * groups * panel_rows + row;
  }
  F32 totals[V][T] = {};
  for (int64_t group = 0; group < groups; ++group) {
    prefetcher.step();
    const int64_t at = token * x.stride + group * group_size;
    I32 sums[V][T] = {};
    add_group<V, T>(codes, x.high + at, x.stride, sums);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) sums[v][t] <<= 8;
    }
    add_group<V, T>(codes, x.low + at, x.stride, sums);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const F32 scale = load(w.scales + scales[v] + group * panel_rows);
      const F32 bias = load(w.biases + scales[v] + group * panel_rows);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        totals[v][t] += __builtin_convertvector(sums[v][t], F32) * scale + bias * x.sums[(token + t) * groups + group];
      }
      codes[v] += group_bytes;
    }
  }
  for (int v = 0; v < V; ++v) {
    for (int t = 0; t < T; ++t) {
      store(out + (token + t) * stride + (vector + v) * lanes, totals[v][t] * x.scales[token + t]);
    }
  }
}

template <int V, int T = LILY_SPLIT_TOKENS>
void split_tokens(const Panels& w, int64_t vector, const SplitRows& x, int64_t token, int64_t tokens,
                  Prefetcher& prefetcher, float* out, int64_t stride) {
  if (tokens == T) return split_tile<V, T>(w, vector, x, token, prefetcher, out, stride);
  if constexpr (T > 1) split_tokens<V, T - 1>(w, vector, x, token, tokens, prefetcher, out, stride);
}

void gemm(const QuantizedRows& rows, const SplitRows& x, const Upcoming& next, uint8_t* scratch, float* out,
          int64_t stride) {
  constexpr int64_t tile = LILY_SPLIT_TOKENS;
  const Panels w = pack(rows, scratch);
  const int64_t vectors = w.count * row_vectors;
  const int64_t tiles = (x.tokens + tile - 1) / tile * ((vectors + vectors_tile - 1) / vectors_tile);
  Prefetcher prefetcher(next, tiles * (w.cols / group_size));
  for (int64_t token = 0; token < x.tokens; token += tile) {
    const int64_t n = smaller(tile, x.tokens - token);
    int64_t v = 0;
    for (; v + vectors_tile <= vectors; v += vectors_tile) {
      split_tokens<vectors_tile>(w, v, x, token, n, prefetcher, out, stride);
    }
    for (; v < vectors; ++v) split_tokens<1>(w, v, x, token, n, prefetcher, out, stride);
  }
}

const SplitKernels split_kernels = {
    .gemv_run = gemv_run, .split = split, .gemv = gemv, .gemm_scratch = gemm_scratch, .gemm = gemm};
