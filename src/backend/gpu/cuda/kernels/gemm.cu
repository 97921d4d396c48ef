// gemm_64_4, moe_gate_up_64_4 and moe_down_64_4 for tensor cores: prefill's arithmetic.
#include "backend/gpu/cuda/replacements.h"
#include "kernels/args.h"
#include "kernels/dialect/cuda.h"
// The bodies need the words above, and each the one before it.
#include "backend/gpu/cuda/kernels/words.h"
// then
#include "backend/gpu/cuda/kernels/gemm_4.h"
// then
#include "backend/gpu/cuda/kernels/gemm_bodies.h"

namespace lily::kernels {
namespace {

extern __shared__ __align__(128) unsigned char dynamic_memory[];

KERNEL(gemm_threads, tensor_gemm, IN(0, bf16, x), WEIGHTS(1, uint, codes), WEIGHTS(2, bf16, scales),
       WEIGHTS(3, bf16, biases), INOUT(4, void, y), ARGS(5, GemmArgs, a)) {
  THREAD_IDS
  dense_block(x, codes, scales, biases, y, a, dynamic_memory, thread_index, group);
}

KERNEL(gemm_threads, tensor_gate_up, IN(0, bf16, x), IN(1, uint, pairs), IN(2, uint, starts), IN(3, uint, blocks),
       WEIGHTS(4, uint, gate_codes), WEIGHTS(5, bf16, gate_scales), WEIGHTS(6, bf16, gate_biases),
       WEIGHTS(7, uint, up_codes), WEIGHTS(8, bf16, up_scales), WEIGHTS(9, bf16, up_biases), OUT(10, bf16, y),
       ARGS(11, GroupedGemmArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  if (group.y >= blocks[0]) return;
  gate_up_block(x, pairs, starts, blocks, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases, y, a,
                dynamic_memory, thread_index, group);
}

KERNEL(gemm_threads, tensor_down, IN(0, bf16, x), IN(1, uint, starts), IN(2, uint, blocks), WEIGHTS(3, uint, codes),
       WEIGHTS(4, bf16, scales), WEIGHTS(5, bf16, biases), OUT(6, bf16, z), ARGS(7, GroupedGemmArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  if (group.y >= blocks[0]) return;
  down_block(x, starts, blocks, codes, scales, biases, z, a, dynamic_memory, thread_index, group);
}

using Grid = std::array<uint32_t, 3>;

// Token tiles are neighbours: they share the codes of a row tile.
Grid dense_grid(const void* args, const Grid&) {
  const GemmArgs& a = *static_cast<const GemmArgs*>(args);
  return {(a.n + dense_tokens - 1) / dense_tokens, (a.rows + gemm_rows - 1) / gemm_rows, 1};
}
Grid gate_up_grid(const void* args, const Grid& portable) {
  return {(static_cast<const GroupedGemmArgs*>(args)->rows + 63) / 64, portable[1], 1};
}
Grid down_grid(const void* args, const Grid& portable) {
  return {(static_cast<const GroupedGemmArgs*>(args)->rows + gemm_rows - 1) / gemm_rows, portable[1], 1};
}

template <class... T>
const void* address(void (*kernel)(T...)) {
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace
}  // namespace lily::kernels

namespace lily::gpu::cuda {

std::span<const Replacement> gemm_replacements() {
  using namespace kernels;
  static const Replacement all[] = {
      {"gemm_64_4", address(tensor_gemm), gemm_threads, sizeof(GemmMemory<dense_tokens>), 80, dense_grid},
      {"moe_gate_up_64_4", address(tensor_gate_up), gemm_threads, sizeof(GemmMemory<map_tile>), 80, gate_up_grid},
      {"moe_down_64_4", address(tensor_down), gemm_threads, sizeof(GemmMemory<map_tile>), 80, down_grid},
  };
  return all;
}

}  // namespace lily::gpu::cuda
