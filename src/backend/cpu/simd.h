// Vectors of LILY_LANES floats by compiler extension (GCC and Clang); the flags of the including file decide what
// instructions they become. Included once by each kernels_<isa>.cpp, inside its namespace.

typedef float F32 __attribute__((vector_size(4 * LILY_LANES)));
typedef uint32_t U32 __attribute__((vector_size(4 * LILY_LANES)));
typedef int32_t I32 __attribute__((vector_size(4 * LILY_LANES)));
typedef uint16_t U16 __attribute__((vector_size(2 * LILY_LANES)));
typedef uint8_t U8 __attribute__((vector_size(LILY_LANES)));

typedef uint8_t Codes __attribute__((vector_size(4 * LILY_LANES)));  // a vector full of bytes
typedef int8_t Signs __attribute__((vector_size(4 * LILY_LANES)));

constexpr int lanes = LILY_LANES;

template <class V>
inline V load_as(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

inline F32 load(const float* p) { return load_as<F32>(p); }
inline void store(float* p, F32 v) { __builtin_memcpy(p, &v, sizeof v); }
inline F32 splat(float x) { return x - F32{}; }

template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

inline float sum(F32 v) {
#if LILY_LANES == 16
  typedef float Half __attribute__((vector_size(32)));
  const Half h = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const F32 h = v;
#endif
#if LILY_LANES >= 8
  typedef float Quarter __attribute__((vector_size(16)));
  const Quarter q = __builtin_shufflevector(h, h, 0, 1, 2, 3) + __builtin_shufflevector(h, h, 4, 5, 6, 7);
#else
  const F32 q = h;
#endif
  return (q[0] + q[2]) + (q[1] + q[3]);
}

#if LILY_LANES == 16
inline I32 even_lanes(I32 a, I32 b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
inline I32 odd_lanes(I32 a, I32 b) {
  return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
#elif LILY_LANES == 8
inline I32 even_lanes(I32 a, I32 b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14); }
inline I32 odd_lanes(I32 a, I32 b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15); }
#else
inline I32 even_lanes(I32 a, I32 b) { return __builtin_shufflevector(a, b, 0, 2, 4, 6); }
inline I32 odd_lanes(I32 a, I32 b) { return __builtin_shufflevector(a, b, 1, 3, 5, 7); }
#endif

// Pairs of words of each quad, a's and b's in turn: from the lower half of the quads, or from the upper one.
inline U32 zip_low(U32 a, U32 b) {
#if LILY_LANES == 16
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
#elif LILY_LANES == 8
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
inline U32 zip_high(U32 a, U32 b) {
#if LILY_LANES == 16
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
#elif LILY_LANES == 8
  return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}

// 16 bytes each from p, p + stride, p + 2 * stride, ... as one vector.
inline U32 load_quads(const uint8_t* p, [[maybe_unused]] int64_t stride) {
  typedef uint32_t Quad __attribute__((vector_size(16)));
#if LILY_LANES == 4
  return load_as<Quad>(p);
#else
  const auto pair = [&](const uint8_t* q) {
    return __builtin_shufflevector(load_as<Quad>(q), load_as<Quad>(q + stride), 0, 1, 2, 3, 4, 5, 6, 7);
  };
#if LILY_LANES == 8
  return pair(p);
#else
  return __builtin_shufflevector(pair(p), pair(p + 2 * stride), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
#endif
}

// In every 16 bytes: words[i] gets word i of quads 0, 1, 2, 3.
inline void transpose_quads(const U32 (&quads)[4], U32 (&words)[4]) {
  const U32 a = zip_low(quads[0], quads[2]), b = zip_low(quads[1], quads[3]);
  const U32 c = zip_high(quads[0], quads[2]), d = zip_high(quads[1], quads[3]);
  words[0] = zip_low(a, b);
  words[1] = zip_high(a, b);
  words[2] = zip_low(c, d);
  words[3] = zip_high(c, d);
}

inline F32 max(F32 a, F32 b) { return a > b ? a : b; }
inline F32 min(F32 a, F32 b) { return a < b ? a : b; }

inline F32 widen_bf16(U16 bits) { return bit_cast<F32>(__builtin_convertvector(bits, U32) << 16); }
// By name where there is one instruction: GCC does not find it behind __builtin_convertvector.
inline U32 widen_bytes(U8 bytes) {
#if defined(__AVX512F__)
  // The masked form: GCC 12 believes that the plain one reads an uninitialised register.
  return bit_cast<U32>(_mm512_maskz_cvtepu8_epi32(0xffff, bit_cast<__m128i>(bytes)));
#elif defined(__AVX2__)
  return bit_cast<U32>(_mm256_cvtepu8_epi32(_mm_set_epi64x(0, bit_cast<int64_t>(bytes))));
#else
  return __builtin_convertvector(__builtin_convertvector(bytes, U16), U32);
#endif
}

#if defined(__AVX512VNNI__) || defined(__AVX2__) || defined(__ARM_FEATURE_DOTPROD)
#define LILY_INTEGER_DOT 1

// Running sums of products of codes below 16 and signed bytes. `dot_steps` products of one lane fit into Dots.
#if defined(__AVX512VNNI__) || defined(__ARM_FEATURE_DOTPROD)
typedef I32 Dots;
constexpr int dot_steps = 1 << 20;
inline Dots dot(Dots sums, Codes codes, Signs x) {
#ifdef __AVX512VNNI__
  return bit_cast<I32>(_mm512_dpbusd_epi32(bit_cast<__m512i>(sums), bit_cast<__m512i>(codes), bit_cast<__m512i>(x)));
#else
  return vdotq_s32(sums, bit_cast<Signs>(codes), x);
#endif
}
inline I32 total(Dots sums) { return sums; }
// 256 * high + the products with one more pair.
inline I32 dot_planes(Dots high, Codes even, Signs low_even, Codes odd, Signs low_odd) {
  return dot(dot(high << 8, even, low_even), odd, low_odd);
}
#else
typedef int16_t Dots __attribute__((vector_size(32)));
constexpr int dot_steps = 8;  // 8 * 2 * 15 * 128 < 2^15
inline Dots dot(Dots sums, Codes codes, Signs x) {
  return sums + bit_cast<Dots>(_mm256_maddubs_epi16(bit_cast<__m256i>(codes), bit_cast<__m256i>(x)));
}
inline I32 total(Dots sums) { return bit_cast<I32>(_mm256_madd_epi16(bit_cast<__m256i>(sums), _mm256_set1_epi16(1))); }
inline I32 dot_planes(Dots high, Codes even, Signs low_even, Codes odd, Signs low_odd) {
  const __m256i upper = _mm256_madd_epi16(bit_cast<__m256i>(high), _mm256_set1_epi16(256));
  return bit_cast<I32>(upper) + total(dot(dot(Dots{}, even, low_even), odd, low_odd));
}
#endif
#endif

inline F32 to_float(U32 codes) { return __builtin_convertvector(bit_cast<I32>(codes), F32); }

// e^x for x in [-87, 88], clamped outside: 2^n times a polynomial on |r| <= ln2 / 2 (Cephes' minimax coefficients),
// relative error below 2e-7.
inline F32 exp(F32 x) {
  x = min(max(x, splat(-87.0f)), splat(88.0f));
  const F32 shifter = splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const F32 shifted = x * 1.44269504088896341f + shifter;
  const F32 n = shifted - shifter;
  const F32 r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  F32 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * bit_cast<F32>((bit_cast<I32>(shifted) - 0x4b400000 + 127) << 23);
}

inline F32 sigmoid(F32 x) { return 1.0f / (1.0f + exp(-x)); }

// The first n < lanes elements; the others are zero.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
inline F32 load_partial(const float* p, int64_t n) {
  return bit_cast<F32>(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p));
}
inline U16 load_halves(const uint8_t* p, int64_t n) {
  return bit_cast<U16>(_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1), p));
}
#else
inline F32 load_partial(const float* p, int64_t n) {
  F32 v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
inline U16 load_halves(const uint8_t* p, int64_t n) {
  U16 v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = load_as<uint16_t>(p + 2 * i);
  return v;
}
#endif

inline void store_partial(float* p, F32 v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
