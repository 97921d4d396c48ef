// Vectors of LILY_LANES floats by compiler extension (GCC and Clang); the flags of the including file decide what
// instructions they become. Included once by each kernels_<isa>.cpp, inside its namespace.

typedef float F32 __attribute__((vector_size(4 * LILY_LANES)));
typedef uint32_t U32 __attribute__((vector_size(4 * LILY_LANES)));
typedef int32_t I32 __attribute__((vector_size(4 * LILY_LANES)));
typedef uint16_t U16 __attribute__((vector_size(2 * LILY_LANES)));
typedef uint8_t U8 __attribute__((vector_size(LILY_LANES)));

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
inline F32 load_partial(const float* p, int64_t n) {
  F32 v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}

inline void store_partial(float* p, F32 v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
