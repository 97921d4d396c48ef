#include "backend/gpu/cuda/kernel_table.h"
#include "kernels/list.h"
// The words are macros, so they come after all other headers, and the kernels after them.
#include "kernels/dialect/cuda.h"
// then
#include "kernels/all.h"

namespace lily::gpu::cuda {
namespace {

#define LILY_FUNCTION(name, threads, accesses, args) reinterpret_cast<const void*>(&kernels::name),
const void* const all[] = {LILY_KERNELS(LILY_FUNCTION)};
#undef LILY_FUNCTION

}  // namespace

const void* portable_kernel(int kernel) { return all[kernel]; }

}  // namespace lily::gpu::cuda
