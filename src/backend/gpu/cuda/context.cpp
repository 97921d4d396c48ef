#include "backend/gpu/cuda/context.h"

namespace lily::gpu::cuda {

Result<void> check(const char* call, cudaError_t status) {
  if (status == cudaSuccess) return {};
  cudaGetLastError();  // or the next call that asks would find it again
  return Error{.where = call, .what = cudaGetErrorString(status), .exit_code = 1};
}

Result<void> Context::make() {
  const auto stream = [](cudaStream_t* to) {
    return check("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(to, cudaStreamNonBlocking));
  };
  const auto event = [](cudaEvent_t* to) {
    return check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(to, cudaEventDisableTiming));
  };
  LILY_CHECK(stream(&main));
  LILY_CHECK(stream(&capture));
  LILY_CHECK(event(&fork));
  for (int i = 0; i < side_streams; ++i) {
    LILY_CHECK(stream(&side[i]));
    LILY_CHECK(event(&join[i]));
  }
  return {};
}

Context::~Context() {
  for (cudaStream_t stream : {main, capture, side[0], side[1], side[2]}) {
    if (stream) cudaStreamDestroy(stream);
  }
  for (cudaEvent_t event : {fork, join[0], join[1], join[2]}) {
    if (event) cudaEventDestroy(event);
  }
}

}  // namespace lily::gpu::cuda
