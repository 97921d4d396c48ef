// attend_chunk for tensor cores.
#include "backend/gpu/cuda/replacements.h"
#include "kernels/args.h"
#include "kernels/dialect/cuda.h"
// The bodies need the words above, and each the one before it.
#include "backend/gpu/cuda/kernels/words.h"
// then
#include "kernels/activations.h"
#include "kernels/attention_place.h"
// then
#include "backend/gpu/cuda/kernels/flash.h"

namespace lily::kernels {
namespace {

extern __shared__ __align__(128) unsigned char dynamic_memory[];

// A threadgroup has a multiprocessor to itself: it needs the registers.
#define LILY_ATTEND_CHUNK(m)                                                                        \
  KERNEL_LARGE(flash_threads<m>, tensor_attend_chunk_##m, IN(0, bf16, q), IN(1, bf16, projections), \
               IN(2, SequenceStep, step), IN(3, uint, blocks), IN(4, bf16, pool), OUT(5, bf16, y),  \
               ARGS(6, AttentionArgs, a)) {                                                         \
    THREAD_IDS                                                                                      \
    wait_for_inputs();                                                                              \
    flash_block<m>(q, projections, step, blocks, pool, y, a, dynamic_memory, thread_index, group);  \
  }
LILY_ATTEND_CHUNK(64)
LILY_ATTEND_CHUNK(128)

// The KV heads' tiles of the same tokens are neighbours, so that of all those with most to do come first.
template <uint M>
std::array<uint32_t, 3> flash_grid(const void* args, const std::array<uint32_t, 3>&) {
  const AttentionArgs& a = *static_cast<const AttentionArgs*>(args);
  const uint32_t tokens = M / (a.heads / a.kv_heads);
  return {a.kv_heads, (a.n + tokens - 1) / tokens, 1};
}

}  // namespace
}  // namespace lily::kernels

namespace lily::gpu::cuda {

std::span<const Replacement> attention_replacements() {
  using namespace kernels;
  // The last one runs whose memory the GPU has.
  static const Replacement all[] = {
      {"attend_chunk", reinterpret_cast<const void*>(&tensor_attend_chunk_64), flash_threads<64>,
       sizeof(FlashMemory<64>), 80, flash_grid<64>},
      {"attend_chunk", reinterpret_cast<const void*>(&tensor_attend_chunk_128), flash_threads<128>,
       sizeof(FlashMemory<128>), 80, flash_grid<128>},
  };
  return all;
}

}  // namespace lily::gpu::cuda
