// norm_gemv_4, gemv_add_4, experts_gate_up_4 and experts_down_4 on tensor cores, which leaves decode to the memory.
#include <algorithm>

#include "backend/gpu/cuda/replacements.h"
#include "kernels/args.h"
#include "kernels/dialect/cuda.h"
// The bodies need the words above, and each what is before it.
#include "backend/gpu/cuda/kernels/words.h"
// then
#include "kernels/routing.h"
// then
#include "backend/gpu/cuda/kernels/step_4.h"

namespace lily::kernels {
namespace {

template <uint chunks>
__global__ void __launch_bounds__(256, 2 / chunks)
    tensor_norm_gemv(const float* x, WEIGHTS(1, float, weight), WEIGHTS(2, uint, codes), WEIGHTS(3, bf16, scales),
                     WEIGHTS(4, bf16, biases), float* y, ARGS(6, GemvArgs, a)) {
  SHARED(float, partial, 2 * tiles_ahead<chunks> * 8 * step_rows);
  SHARED(float, squares, 8);
  gemv_4<chunks, true>(x, weight, codes, scales, biases, y, a, partial, squares);
}

__global__ void __launch_bounds__(256, 2)
    tensor_gemv_add(const float* x, WEIGHTS(1, uint, codes), WEIGHTS(2, bf16, scales), WEIGHTS(3, bf16, biases),
                    float* y, ARGS(5, GemvArgs, a)) {
  SHARED(float, partial, 2 * tiles_ahead<2> * 8 * step_rows);
  gemv_4<2, false>(x, x, codes, scales, biases, y, a, partial, partial);
}

__global__ void __launch_bounds__(256, 2)
    tensor_step_gate_up(const float* x, WEIGHTS(1, float, weight), const float* logits, WEIGHTS(3, uint, gate_codes),
                        WEIGHTS(4, bf16, gate_scales), WEIGHTS(5, bf16, gate_biases), WEIGHTS(6, uint, up_codes),
                        WEIGHTS(7, bf16, up_scales), WEIGHTS(8, bf16, up_biases), float* y, ARGS(10, MoeArgs, a)) {
  SHARED(float, partial, 2 * tiles_ahead<1> * 8 * step_rows);
  SHARED(float, squares, 8);
  SHARED(uint, best, 2 * 8 * max_slots);
  SHARED(uint, chosen, 2 * max_slots);
  gate_up_4(x, weight, logits, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases, y, a, partial,
            squares, best, chosen);
}

__global__ void __launch_bounds__(288, 2)
    tensor_step_down(const float* y, const float* logits, WEIGHTS(2, uint, codes), WEIGHTS(3, bf16, scales),
                     WEIGHTS(4, bf16, biases), float* x, ARGS(6, MoeArgs, a)) {
  SHARED(float, partial, 9 * step_rows);
  SHARED(uint, best, 2 * 9 * max_slots);
  SHARED(uint, chosen, 2 * max_slots);
  SHARED(float, weights, max_slots);
  down_4(y, logits, codes, scales, biases, x, a, partial, best, chosen, weights);
}

}  // namespace
}  // namespace lily::kernels

#undef device
#undef thread

namespace lily::gpu::cuda {
namespace {

using Grid = std::array<uint32_t, 3>;

// A block a multiprocessor, with the same number of tiles each as far as it can be: half of its registers stay free for the
// next kernel, which fetches its first codes meanwhile.
uint32_t blocks_for(uint32_t tiles) {
  static const uint32_t blocks = [] {
    int count = 0;
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
    return static_cast<uint32_t>(count > 0 ? count : 1);
  }();
  const uint32_t at_once = tiles < 32 * blocks ? blocks : 2 * blocks;  // a long stream hides more in two
  const uint32_t each = (tiles + at_once - 1) / at_once;
  return (tiles + each - 1) / each;
}

const kernels::GemvArgs& gemv_args(const void* args) { return *static_cast<const kernels::GemvArgs*>(args); }
const kernels::MoeArgs& moe_args(const void* args) { return *static_cast<const kernels::MoeArgs*>(args); }

bool gemv_applies(const void* args, uint32_t most_columns) {
  const kernels::GemvArgs& a = gemv_args(args);
  return a.cols % kernels::chunk_columns == 0 && a.cols <= most_columns && a.group_size >= 64;
}
bool short_gemv_applies(const void* args) { return gemv_applies(args, 8 * kernels::chunk_columns); }
bool long_gemv_applies(const void* args) { return gemv_applies(args, 16 * kernels::chunk_columns); }
Grid gemv_grid(const void* args, const Grid& portable) {
  return {blocks_for((gemv_args(args).rows + kernels::step_rows - 1) / kernels::step_rows), portable[1], 1};
}

bool gate_up_applies(const void* args) {
  const kernels::MoeArgs& a = moe_args(args);
  return a.experts > 0 && a.hidden % kernels::chunk_columns == 0 && a.hidden <= 8 * kernels::chunk_columns &&
         a.width % 8 == 0 && a.group_size >= 64;
}
Grid gate_up_grid(const void* args, const Grid& portable) {
  const kernels::MoeArgs& a = moe_args(args);
  return {blocks_for((a.top_k + a.shared_parts) * a.width / 8), portable[2], 1};
}

bool down_applies(const void* args) {
  const kernels::MoeArgs& a = moe_args(args);
  return a.experts > 0 && a.experts <= 288 && a.width % kernels::chunk_columns == 0 &&
         (a.top_k + a.shared_parts) * a.width <= 18 * kernels::chunk_columns && a.hidden % kernels::step_rows == 0 &&
         a.down_group_size >= 64;
}
Grid down_grid(const void* args, const Grid& portable) {
  return {moe_args(args).hidden / kernels::step_rows, portable[1], 1};
}

template <class Kernel>
const void* address(Kernel* kernel) {
  return reinterpret_cast<const void*>(kernel);
}

}  // namespace

std::span<const Replacement> step_replacements() {
  static const Replacement all[] = {
      {"norm_gemv_4", address(kernels::tensor_norm_gemv<2>), 256, 0, 80, gemv_grid, long_gemv_applies},
      {"norm_gemv_4", address(kernels::tensor_norm_gemv<1>), 256, 0, 80, gemv_grid, short_gemv_applies},
      {"gemv_add_4", address(kernels::tensor_gemv_add), 256, 0, 80, gemv_grid, long_gemv_applies},
      {"experts_gate_up_4", address(kernels::tensor_step_gate_up), 256, 0, 80, gate_up_grid, gate_up_applies},
      {"experts_down_4", address(kernels::tensor_step_down), 288, 0, 80, down_grid, down_applies},
  };
  return all;
}

}  // namespace lily::gpu::cuda
