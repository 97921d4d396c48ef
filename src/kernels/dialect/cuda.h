// The dialect in CUDA: dialect/host.h says what the words mean. Included after everything else.
#pragma once

#include <cuda_bf16.h>
#include <stdint.h>

namespace lily::kernels {

using uint = unsigned int;
using ulong = unsigned long long;
using bf16 = __nv_bfloat16;

// __device__ by the other spelling of its attribute: `device` is a word of the dialect, and a macro from the end of this file on.
#undef __device__
#define FN static __attribute__((__device__)) __forceinline__

FN float to_float(bf16 v) { return __bfloat162float(v); }
FN bf16 to_bf16(float v) { return __float2bfloat16_rn(v); }
FN float as_float(uint v) { return __uint_as_float(v); }
FN uint as_uint(float v) { return __float_as_uint(v); }
FN float2 unpack_bf16(uint pair) { return make_float2(as_float(pair << 16), as_float(pair & 0xffff0000u)); }
FN uint pack_bf16(float x, float y) {
  uint pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
  return pair;
}

FN uint2 load_uint2(const void* from) { return *static_cast<const uint2*>(from); }
FN uint4 load_uint4(const void* from) { return *static_cast<const uint4*>(from); }
FN float4 load_float4(const void* from) { return *static_cast<const float4*>(from); }
FN void store_uint2(void* to, uint2 v) { *static_cast<uint2*>(to) = v; }
FN void store_uint4(void* to, uint4 v) { *static_cast<uint4*>(to) = v; }
FN void store_float4(void* to, float4 v) { *static_cast<float4*>(to) = v; }

FN float exp_f(float x) { return __expf(x); }
FN float log_f(float x) { return __logf(x); }
FN float divide_f(float a, float b) { return __fdividef(a, b); }
FN float rsqrt_f(float x) { return rsqrtf(x); }
FN float max_f(float a, float b) { return fmaxf(a, b); }
FN float min_f(float a, float b) { return fminf(a, b); }
FN uint max_u(uint a, uint b) { return a > b ? a : b; }
FN uint min_u(uint a, uint b) { return a < b ? a : b; }
FN uint popcount_u(uint v) { return __popc(v); }
// One instruction; left to itself, the compiler makes two.
FN uint merge_bits(uint v, uint mask, uint others) {
  uint merged;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(merged) : "r"(v), "r"(mask), "r"(others));
  return merged;
}

FN void threadgroup_sync() { __syncthreads(); }
FN void threadgroup_device_sync() { __syncthreads(); }
FN void simdgroup_sync() { __syncwarp(); }
// Programmatic dependent launch: a kernel may start while the one before it ends, and waits here for its results.
FN void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

FN uint simd_shuffle(uint v, uint from) { return __shfl_sync(0xffffffffu, v, from); }
FN float simd_shuffle(float v, uint from) { return __shfl_sync(0xffffffffu, v, from); }
FN uint simd_shuffle_xor(uint v, uint mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
FN float simd_shuffle_xor(float v, uint mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
FN uint simd_ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }
FN float simd_sum(float v) {
#pragma unroll
  for (uint mask = 16; mask > 0; mask /= 2) v += simd_shuffle_xor(v, mask);
  return v;
}
FN float simd_max(float v) {
#pragma unroll
  for (uint mask = 16; mask > 0; mask /= 2) v = max_f(v, simd_shuffle_xor(v, mask));
  return v;
}
FN uint simd_max(uint v) { return __reduce_max_sync(0xffffffffu, v); }

// The accumulators of mma.m16n8k16, row block by row block.
template <int M, int N>
struct Tile {
  float value[M * N / 32];
};

template <int M, int N>
FN void tile_zero(Tile<M, N>& tile) {
#pragma unroll
  for (int i = 0; i < M * N / 32; ++i) tile.value[i] = 0;
}

FN uint shared_address(const void* p) { return static_cast<uint>(__cvta_generic_to_shared(p)); }
FN void load_matrices(uint (&out)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(shared_address(row)));
}
FN void load_matrices_transposed(uint (&out)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(shared_address(row)));
}
FN void load_matrix_pair(uint (&out)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(shared_address(row)));
}
FN void mma(float* c, const uint (&a)[4], const uint (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <int M, int N, int K, bool transposed>
FN void tile_multiply(Tile<M, N>& tile, const bf16* a, uint lda, const bf16* b, uint ldb) {
  const uint lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    uint left[M / 16][4];
#pragma unroll
    for (int m = 0; m < M / 16; ++m) load_matrices(left[m], a + (m * 16 + lane % 16) * lda + k + lane / 16 * 8);
#pragma unroll
    for (int n = 0; n < N / 8; ++n) {
      uint right[2];
      if (transposed) {
        load_matrices_transposed(right, b + (k + lane % 16) * ldb + n * 8);
      } else {
        load_matrix_pair(right, b + (n * 8 + lane % 8) * ldb + k + lane / 8 % 2 * 8);
      }
#pragma unroll
      for (int m = 0; m < M / 16; ++m) mma(&tile.value[(m * (N / 8) + n) * 4], left[m], right);
    }
  }
}
template <int M, int N, int K>
FN void tile_mma(Tile<M, N>& tile, const bf16* a, uint lda, const bf16* b, uint ldb) {
  tile_multiply<M, N, K, false>(tile, a, lda, b, ldb);
}
template <int M, int N, int K>
FN void tile_mma_transposed(Tile<M, N>& tile, const bf16* a, uint lda, const bf16* b, uint ldb) {
  tile_multiply<M, N, K, true>(tile, a, lda, b, ldb);
}

template <int M, int N>
FN void tile_scale_rows(Tile<M, N>& tile, const float* scale) {
  const uint row = threadIdx.x % 32 / 4;
#pragma unroll
  for (int i = 0; i < M * N / 32; ++i) tile.value[i] *= scale[i / (N / 2) * 16 + i % 4 / 2 * 8 + row];
}

template <int M, int N>
FN void tile_store(const Tile<M, N>& tile, float* to, uint ld) {
  const uint row = threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < M * N / 32; ++i) {
    to[(i / (N / 2) * 16 + i % 4 / 2 * 8 + row) * ld + i % (N / 2) / 4 * 8 + column + i % 2] = tile.value[i];
  }
}

}  // namespace lily::kernels

#define device
#define threadgroup
#define constant
#define thread
#define UNROLL _Pragma("unroll")
#define KERNEL(threads, name, ...) __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
// Left to itself, the compiler keeps registers few enough for three threadgroups of 128 on a multiprocessor.
#define KERNEL_LARGE(threads, name, ...) __global__ void __launch_bounds__(threads, 1) name(__VA_ARGS__)
// Only weights are __restrict__: the compiler may move reads of such memory above wait_for_inputs().
#define IN(i, T, name) const T* name
#define WEIGHTS(i, T, name) const T* __restrict__ name
#define OUT(i, T, name) T* name
#define INOUT(i, T, name) T* name
#define ARGS(i, T, name) const __grid_constant__ T name
#define THREAD_IDS                                          \
  [[maybe_unused]] const uint lane = threadIdx.x % 32;      \
  [[maybe_unused]] const uint simdgroup = threadIdx.x / 32; \
  [[maybe_unused]] const uint thread_index = threadIdx.x;   \
  [[maybe_unused]] const uint3 group = make_uint3(blockIdx.x, blockIdx.y, blockIdx.z);
#define SHARED(T, name, count) __shared__ __align__(16) T name[count]
