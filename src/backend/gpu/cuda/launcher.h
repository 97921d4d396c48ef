// Lists of dispatches as launches of CUDA.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backend/gpu/cuda/context.h"
#include "backend/gpu/device.h"

namespace lily::gpu::cuda {

class Launcher {
 public:
  explicit Launcher(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  Result<void> make();

  // Loads the kernels of a list: CUDA loads late, and must not while a stream captures.
  Result<void> prepare(std::span<const Dispatch> list);
  // Launches a prepared list. Dispatches between two barriers run side by side.
  Result<void> launch(std::span<const Dispatch> list, cudaStream_t stream);

 private:
  struct Kernel {
    const void* function = nullptr;
    unsigned threads = 0;
    size_t shared_bytes = 0;
    std::array<uint32_t, 3> (*grid)(const void* args, const std::array<uint32_t, 3>& portable) = nullptr;
    bool (*applies)(const void* args) = nullptr;
    bool loaded = false;
  };

  const Kernel& kernel_for(const Dispatch& dispatch) const;

  Result<void> launch_one(const Dispatch& dispatch, cudaStream_t stream, bool programmatic);
  Result<void> launch_side_by_side(std::span<const Dispatch* const> stage, cudaStream_t stream);

  std::shared_ptr<Context> context_;
  std::vector<std::vector<Kernel>> kernels_;  // by number: the portable one, then what may take its place
  // Whether a kernel may start while the one before it ends; wait_for_inputs() of the dialect then holds it back.
  bool programmatic_launch_ = false;
};

}  // namespace lily::gpu::cuda
