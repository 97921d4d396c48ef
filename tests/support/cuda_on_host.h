// The words of backend/gpu/cuda/kernels/ on the host, over the fibers of the emulator, so that CUDA's own kernels are tested where
// there is no GPU. Included after everything but those kernels.
#pragma once

#include <cassert>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "backend/gpu/emulator/lanes.h"
#include "kernels/dialect/host_words.h"

namespace lily::kernels {

inline uint2 make_uint2(uint x, uint y) { return {x, y}; }
inline uint4 make_uint4(uint x, uint y, uint z, uint w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// Copies behind the back of the threads: the earliest they can happen is at once, the latest is when somebody waits for them. What
// is right with both has no race.
struct AsyncCopies {
  struct Copy {
    void* to;
    const void* from;
    bool there;
  };
  bool late = false;
  std::vector<Copy> open[1024];
  std::deque<std::vector<Copy>> groups[1024];

  static void run(const Copy& copy) { copy.there ? std::memcpy(copy.to, copy.from, 16) : std::memset(copy.to, 0, 16); }
  void clear() {
    for (auto& copies : open) copies.clear();
    for (auto& copies : groups) copies.clear();
  }
};
inline AsyncCopies async_copies;

inline void copy_async(void* to, const void* from, bool there) {
  assert(reinterpret_cast<uintptr_t>(to) % 16 == 0 && reinterpret_cast<uintptr_t>(from) % 16 == 0);
  const AsyncCopies::Copy copy{to, from, there};
  async_copies.late ? async_copies.open[host::thread_ids().thread_index].push_back(copy) : AsyncCopies::run(copy);
}
inline void copies_commit() {
  std::vector<AsyncCopies::Copy>& open = async_copies.open[host::thread_ids().thread_index];
  async_copies.groups[host::thread_ids().thread_index].push_back(std::move(open));
  open.clear();
}
template <int pending>
void copies_wait() {
  auto& groups = async_copies.groups[host::thread_ids().thread_index];
  for (; groups.size() > pending; groups.pop_front()) {
    for (const AsyncCopies::Copy& copy : groups.front()) AsyncCopies::run(copy);
  }
}

inline uint fma_pairs(uint a, uint b, uint c) {
  const float2 x = unpack_bf16(a), y = unpack_bf16(b), z = unpack_bf16(c);
  return pack_bf16(std::fma(x.x, y.x, z.x), std::fma(x.y, y.y, z.y));
}
inline uint pick_bytes(uint x, uint y, uint order) {
  const uint64_t all = x | uint64_t{y} << 32;
  uint picked = 0;
  for (uint i = 0; i < 4; ++i) picked |= static_cast<uint>(all >> (order >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return picked;
}
inline uint and_or(uint a, uint b, uint c) { return (a & b) | c; }
inline uint log2_u(uint power) { return 31u - static_cast<uint>(std::countl_zero(power)); }
inline uint bits_of(bf16 v) { return v.bits; }

// 8x8 matrices of bf16: of lane l, `row` is row l % 8 of matrix l / 8; it gets the pair at row l / 4 and column l % 4 * 2, or, where
// they are transposed, at column and row.
inline void load_four(uint (&out)[4], const void* row, bool transposed) {
  const auto address = reinterpret_cast<uintptr_t>(row);
  assert(address % 16 == 0);
  uint low[32], high[32];
  host::gather(static_cast<uint>(address), low);
  host::gather(static_cast<uint>(address >> 32), high);
  const uint lane = host::thread_ids().lane, outer = lane / 4, inner = lane % 4 * 2;
  for (uint i = 0; i < 4; ++i) {
    uint16_t pair[2];
    for (uint j = 0; j < 2; ++j) {
      const uint r = i * 8 + (transposed ? inner + j : outer), column = transposed ? outer : inner + j;
      std::memcpy(&pair[j], reinterpret_cast<const uint16_t*>(low[r] | uintptr_t{high[r]} << 32) + column, 2);
    }
    out[i] = pair[0] | uint{pair[1]} << 16;
  }
}
inline void load_matrices(uint (&out)[4], const void* row) { load_four(out, row, false); }
inline void load_matrices_transposed(uint (&out)[4], const void* row) { load_four(out, row, true); }
inline float exp2_f(float x) { return std::exp2(x); }
inline uint load_pair(const bf16* from) {
  uint pair;
  std::memcpy(&pair, from, 4);
  return pair;
}
inline void store_pair(bf16* to, uint pair) { std::memcpy(to, &pair, 4); }

// m16n8k16: who holds what is in the PTX manual.
inline void mma(float* c, const uint (&a)[4], const uint (&b)[2]) {
  uint left[4][32], right[2][32];
  for (uint i = 0; i < 4; ++i) host::gather(a[i], left[i]);
  for (uint i = 0; i < 2; ++i) host::gather(b[i], right[i]);
  const uint lane = host::thread_ids().lane;
  for (uint i = 0; i < 4; ++i) {
    const uint row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (uint k = 0; k < 16; k += 2) {
      const float2 x = unpack_bf16(left[row / 8 + k / 8 * 2][row % 8 * 4 + k % 8 / 2]);
      const float2 y = unpack_bf16(right[k / 8][column * 4 + k % 8 / 2]);
      c[i] += x.x * y.x + x.y * y.y;
    }
  }
}

}  // namespace lily::kernels

namespace lily::test {

// Dynamic threadgroup memory of a kernel that runs, NaN at first.
alignas(128) inline unsigned char dynamic_memory[200 << 10];

// Runs `kernel` as every threadgroup of a grid; `late`: when its copies happen.
inline void run_on_host(uint32_t threads, uint32_t groups_x, uint32_t groups_y, bool late,
                        const std::function<void()>& kernel) {
  gpu::emulator::ThreadgroupRunner runner;
  for (uint32_t i = 0; i < groups_x * groups_y; ++i) {
    std::memset(dynamic_memory, 0xff, sizeof dynamic_memory);
    kernels::async_copies.clear();
    kernels::async_copies.late = late;
    const gpu::emulator::Fault fault = runner.run(kernel, threads, {i % groups_x, i / groups_x, 0}, i);
    ASSERT_EQ(fault, "");
  }
}

}  // namespace lily::test
