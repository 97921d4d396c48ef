#include "backend/gpu/cuda/memory.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>

namespace lily::gpu::cuda {
namespace {

constexpr size_t piece_bytes = size_t{32} << 20;
constexpr size_t chunk_bytes = size_t{1} << 20;  // that one thread copies at a time
constexpr int most_threads = 16;                 // more do not fill a bus faster

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(std::shared_ptr<Context> context, void* address, size_t bytes, bool visible)
      : Buffer(bytes, visible ? static_cast<std::byte*>(address) : nullptr),
        context_(std::move(context)),
        address_(static_cast<std::byte*>(address)) {}
  ~CudaBuffer() override {
    cudaStreamSynchronize(context_->main);  // what is submitted may use it
    host() ? cudaFreeHost(address_) : cudaFree(address_);
  }
  std::byte* address() const { return address_; }

 private:
  std::shared_ptr<Context> context_;
  std::byte* address_;
};

}  // namespace

Result<std::unique_ptr<Buffer>> allocate(std::shared_ptr<Context> context, size_t bytes, bool visible) {
  void* address = nullptr;
  const size_t at_least = std::max<size_t>(bytes, 16);
  if (visible) {
    LILY_CHECK(check("cudaHostAlloc", cudaHostAlloc(&address, at_least, cudaHostAllocMapped | cudaHostAllocPortable)));
  } else {
    LILY_CHECK(check("cudaMalloc", cudaMalloc(&address, at_least)));
  }
  return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(std::move(context), address, bytes, visible));
}

std::byte* device_address(const BufferView& view) {
  assert(view.offset % 16 == 0 && view.offset + view.bytes <= view.buffer->bytes());
  return static_cast<const CudaBuffer*>(view.buffer)->address() + view.offset;
}

Uploader::~Uploader() {
  if (pieces_[0].data) cudaStreamSynchronize(context_->main);
  for (const Piece& piece : pieces_) {
    if (piece.emptied) cudaEventDestroy(piece.emptied);
    if (piece.data) cudaFreeHost(piece.data);
  }
}

Result<void> Uploader::make_pieces() {
  for (Piece& piece : pieces_) {
    if (!piece.emptied) {
      LILY_CHECK(check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&piece.emptied, cudaEventDisableTiming)));
    }
    if (piece.data) continue;
    void* data = nullptr;
    LILY_CHECK(check("cudaHostAlloc", cudaHostAlloc(&data, piece_bytes, cudaHostAllocDefault)));
    piece.data = static_cast<std::byte*>(data);
  }
  return {};
}

// The current piece is full: mark its end, and take the other once the bus has emptied it.
Result<void> Uploader::next_piece() {
  LILY_CHECK(check("cudaEventRecord", cudaEventRecord(pieces_[current_].emptied, context_->main)));
  current_ = 1 - current_;
  LILY_CHECK(check("cudaEventSynchronize", cudaEventSynchronize(pieces_[current_].emptied)));
  pieces_[current_].used = 0;
  return {};
}

void Uploader::fill(std::byte* to, std::span<const std::byte> from) {
  if (from.size() <= chunk_bytes) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  if (!pool_) pool_.emplace(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, most_threads));
  const int64_t chunks = static_cast<int64_t>((from.size() + chunk_bytes - 1) / chunk_bytes);
  pool_->parallel_for(chunks, [&](int64_t i, int) {
    const size_t first = static_cast<size_t>(i) * chunk_bytes;
    std::memcpy(to + first, from.data() + first, std::min(chunk_bytes, from.size() - first));
  });
}

Result<void> Uploader::upload(std::byte* to, std::span<const std::byte> from) {
  LILY_CHECK(make_pieces());
  while (!from.empty()) {
    if (pieces_[current_].used == piece_bytes) LILY_CHECK(next_piece());
    Piece& piece = pieces_[current_];
    const size_t count = std::min(from.size(), piece_bytes - piece.used);
    std::byte* const staged = piece.data + piece.used;
    fill(staged, from.first(count));
    LILY_CHECK(check("cudaMemcpyAsync", cudaMemcpyAsync(to, staged, count, cudaMemcpyDefault, context_->main)));
    piece.used += count;
    to += count;
    from = from.subspan(count);
  }
  return {};
}

}  // namespace lily::gpu::cuda
