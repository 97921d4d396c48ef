// The dialect on the host: every thread of a threadgroup is a fiber (backend/gpu/emulator/lanes.h), and every word means what it
// means in Metal. Those that are macros are in dialect/host_words.h, which a source includes after everything but kernels.
//
// The words, the same on every target:
//   KERNEL(threads, name, parameters...)   a kernel of `threads` threads a threadgroup; its body starts with THREAD_IDS
//   KERNEL_LARGE(threads, name, ...)      one whose threadgroups want registers more than neighbours on their core
//   IN, OUT, INOUT(i, T, name)             buffer i of elements T;  ARGS(i, T, name): the arguments, after the buffers
//   WEIGHTS(i, T, name)                    an IN that no kernel ever writes: may be read before wait_for_inputs()
//   THREAD_IDS                             lane, simdgroup, thread_index (uint), group (uint3, the threadgroup's place)
//   SHARED(T, name, count)                 an array in threadgroup memory, aligned to 16 bytes, garbage at first
//   FN                                     an inline function; pointers say device, threadgroup, constant or thread
//   wait_for_inputs()                      before the first use of any buffer that is no WEIGHTS; every thread calls it once
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"

namespace lily::host {

using uint = unsigned int;
struct uint2 {
  uint x, y;
};
struct uint3 {
  uint x, y, z;
};
struct alignas(16) uint4 {
  uint x, y, z, w;
};
struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct bf16 {
  uint16_t bits;
};

// Of the fiber that runs.
struct ThreadIds {
  uint lane, simdgroup, thread_index;
  uint3 group;
};
const ThreadIds& thread_ids();

// `count * size` bytes of the threadgroup's memory: the n-th call of every thread gives the same place.
void* shared_memory(size_t size, size_t count, const char* name);

// Meetings of a simdgroup or threadgroup; all its threads must come to the same one, which its name tells.
void meet_threadgroup(const char* name);

using Reduction = uint (*)(const uint (&values)[32]);
struct Meeting {
  uint values[32];  // that the lanes brought
  uint result;      // of the reduction, done once for all
};
const Meeting& meet_simdgroup(uint value, const char* name, Reduction reduction = nullptr);  // good until the next

inline uint exchange(uint value, uint from, const char* name = "exchange") {  // value of lane `from`
  return meet_simdgroup(value, name).values[from % 32];
}
inline void gather(uint value, uint (&all)[32], const char* name = "gather") {  // values of all lanes
  std::memcpy(all, meet_simdgroup(value, name).values, sizeof all);
}

}  // namespace lily::host

namespace lily::kernels {

using host::bf16;
using host::float2;
using host::float4;
using host::uint;
using ulong = uint64_t;
using host::uint2;
using host::uint3;
using host::uint4;

inline float to_float(bf16 v) { return bf16_to_float(v.bits); }
inline bf16 to_bf16(float v) { return {float_to_bf16(v)}; }
inline float as_float(uint v) { return std::bit_cast<float>(v); }
inline uint as_uint(float v) { return std::bit_cast<uint>(v); }
// A pair of bf16 as memory has it: x in the low half.
inline float2 unpack_bf16(uint pair) { return {as_float(pair << 16), as_float(pair & 0xffff0000u)}; }
inline uint pack_bf16(float x, float y) { return to_bf16(x).bits | uint{to_bf16(y).bits} << 16; }

// Vectors of 8 and 16 bytes from an address aligned to as many.
template <class T>
T load_vector(const void* from) {
  T v;
  std::memcpy(&v, __builtin_assume_aligned(from, alignof(T)), sizeof(T));
  return v;
}
inline uint2 load_uint2(const void* from) { return load_vector<uint2>(from); }
inline uint4 load_uint4(const void* from) { return load_vector<uint4>(from); }
inline float4 load_float4(const void* from) { return load_vector<float4>(from); }
inline void store_uint2(void* to, uint2 v) { std::memcpy(to, &v, sizeof v); }
inline void store_uint4(void* to, uint4 v) { std::memcpy(to, &v, sizeof v); }
inline void store_float4(void* to, float4 v) { std::memcpy(to, &v, sizeof v); }

inline float exp_f(float x) { return std::exp(x); }
inline float log_f(float x) { return std::log(x); }
inline float divide_f(float a, float b) { return a / b; }  // elsewhere off by two units in the last place
inline float rsqrt_f(float x) { return 1.0f / std::sqrt(x); }
inline float max_f(float a, float b) { return a > b ? a : b; }
inline float min_f(float a, float b) { return a < b ? a : b; }
inline uint max_u(uint a, uint b) { return a > b ? a : b; }
inline uint min_u(uint a, uint b) { return a < b ? a : b; }
inline uint popcount_u(uint v) { return static_cast<uint>(std::popcount(v)); }
inline uint merge_bits(uint v, uint mask, uint others) { return (v & mask) | others; }

inline void threadgroup_sync() { host::meet_threadgroup("threadgroup_sync"); }
inline void threadgroup_device_sync() {
  host::meet_threadgroup("threadgroup_device_sync");
}  // shows writes to device memory, too
inline void simdgroup_sync() { host::meet_simdgroup(0, "simdgroup_sync"); }
inline void wait_for_inputs() {}

inline uint simd_shuffle(uint v, uint from) { return host::exchange(v, from, "simd_shuffle"); }
inline float simd_shuffle(float v, uint from) { return as_float(simd_shuffle(as_uint(v), from)); }
inline uint simd_shuffle_xor(uint v, uint mask) {
  return host::exchange(v, host::thread_ids().lane ^ mask, "simd_shuffle_xor");
}
inline float simd_shuffle_xor(float v, uint mask) { return as_float(simd_shuffle_xor(as_uint(v), mask)); }
// Bit i: lane i's predicate.
inline uint simd_ballot(bool predicate) {
  const host::Reduction bits = [](const uint(&all)[32]) {
    uint result = 0;
    for (uint i = 0; i < 32; ++i) result |= all[i] << i;
    return result;
  };
  return host::meet_simdgroup(predicate, "simd_ballot", bits).result;
}
// In the order of a butterfly of shuffles, which is CUDA's.
inline float simd_sum(float v) {
  const host::Reduction sum = [](const uint(&all)[32]) {
    float part[32];
    for (uint i = 0; i < 32; ++i) part[i] = as_float(all[i]);
    for (uint n = 16; n > 0; n /= 2) {
      for (uint i = 0; i < n; ++i) part[i] += part[i + n];
    }
    return as_uint(part[0]);
  };
  return as_float(host::meet_simdgroup(as_uint(v), "simd_sum", sum).result);
}
inline float simd_max(float v) {
  const host::Reduction max = [](const uint(&all)[32]) {
    float result = as_float(all[0]);
    for (const uint other : all) result = max_f(result, as_float(other));
    return as_uint(result);
  };
  return as_float(host::meet_simdgroup(as_uint(v), "simd_max", max).result);
}
inline uint simd_max(uint v) {
  const host::Reduction max = [](const uint(&all)[32]) {
    uint result = 0;
    for (const uint other : all) result = max_u(result, other);
    return result;
  };
  return host::meet_simdgroup(v, "simd_max of uint", max).result;
}

// An [M, N] float32 tile of one simdgroup, M a multiple of 16 and N of 8. Which lane holds what differs between targets; only
// tile_store shows it.
template <int M, int N>
struct Tile {
  float value[M * N / 32];

  static uint row(uint lane, uint i) { return i / (N / 2) * 16 + i % 4 / 2 * 8 + lane / 4; }
  static uint column(uint lane, uint i) { return i % (N / 2) / 4 * 8 + lane % 4 * 2 + i % 2; }
};

template <int M, int N>
void tile_zero(Tile<M, N>& tile) {
  for (float& v : tile.value) v = 0;
}

// tile[m][n] += sum over k < K of a[m * lda + k] * b[n * ldb + k]; K a multiple of 16, rows aligned to 16 bytes.
template <int M, int N, int K>
void tile_mma(Tile<M, N>& tile, const bf16* a, uint lda, const bf16* b, uint ldb) {
  const uint lane = host::thread_ids().lane;
  for (uint i = 0; i < M * N / 32; ++i) {
    const bf16 *x = a + Tile<M, N>::row(lane, i) * lda, *y = b + Tile<M, N>::column(lane, i) * ldb;
    float sum = 0;
    for (uint k = 0; k < K; ++k) sum += to_float(x[k]) * to_float(y[k]);
    tile.value[i] += sum;
  }
}

// The same with b transposed: b[k * ldb + n].
template <int M, int N, int K>
void tile_mma_transposed(Tile<M, N>& tile, const bf16* a, uint lda, const bf16* b, uint ldb) {
  const uint lane = host::thread_ids().lane;
  for (uint i = 0; i < M * N / 32; ++i) {
    const bf16 *x = a + Tile<M, N>::row(lane, i) * lda, *y = b + Tile<M, N>::column(lane, i);
    float sum = 0;
    for (uint k = 0; k < K; ++k) sum += to_float(x[k]) * to_float(y[k * ldb]);
    tile.value[i] += sum;
  }
}

// tile[m][n] *= scale[m]
template <int M, int N>
void tile_scale_rows(Tile<M, N>& tile, const float* scale) {
  const uint lane = host::thread_ids().lane;
  for (uint i = 0; i < M * N / 32; ++i) tile.value[i] *= scale[Tile<M, N>::row(lane, i)];
}

// to[m * ld + n] = tile[m][n], in threadgroup memory. Others see it after a sync.
template <int M, int N>
void tile_store(const Tile<M, N>& tile, float* to, uint ld) {
  const uint lane = host::thread_ids().lane;
  for (uint i = 0; i < M * N / 32; ++i) to[Tile<M, N>::row(lane, i) * ld + Tile<M, N>::column(lane, i)] = tile.value[i];
}

}  // namespace lily::kernels
