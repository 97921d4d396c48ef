// What everything of the CUDA device shares: its streams, and how an error of CUDA becomes one of ours.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <memory>

#include "base/result.h"

namespace lily::gpu::cuda {

// `call` names the function of CUDA that returned `status`.
Result<void> check(const char* call, cudaError_t status);

constexpr int side_streams = 3;

// Buffers and recordings hold it too, so that they may outlive the device.
struct Context {
  Context() = default;
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Result<void> make();

  cudaStream_t main = nullptr;     // of everything that is submitted
  cudaStream_t capture = nullptr;  // where recordings are made, so that `main` is never seen while it captures
  // Dispatches that do not depend on each other leave the stream at `fork` and come back at `join`.
  std::array<cudaStream_t, side_streams> side = {};
  cudaEvent_t fork = nullptr;
  std::array<cudaEvent_t, side_streams> join = {};
};

}  // namespace lily::gpu::cuda
