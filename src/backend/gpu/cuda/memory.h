// Memory of the CUDA device, and the way of large data into it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>

#include "backend/gpu/cuda/context.h"
#include "backend/gpu/device.h"
#include "base/thread_pool.h"

namespace lily::gpu::cuda {

// With `visible`: memory of the host that the GPU reaches over the bus, at the same address.
Result<std::unique_ptr<Buffer>> allocate(std::shared_ptr<Context> context, size_t bytes, bool visible);

std::byte* device_address(const BufferView& view);

// Copies to the GPU through two pinned pieces of host memory: several threads fill one while the bus empties the other.
class Uploader {
 public:
  explicit Uploader(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  ~Uploader();

  Result<void> upload(std::byte* to, std::span<const std::byte> from);  // `from` may go away

 private:
  struct Piece {
    std::byte* data = nullptr;
    size_t used = 0;
    cudaEvent_t emptied = nullptr;
  };

  Result<void> make_pieces();
  Result<void> next_piece();
  void fill(std::byte* to, std::span<const std::byte> from);

  std::shared_ptr<Context> context_;
  std::array<Piece, 2> pieces_;
  int current_ = 0;
  std::optional<ThreadPool> pool_;
};

}  // namespace lily::gpu::cuda
