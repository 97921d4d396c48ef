// Counts the bytes that a kind of object holds, wherever the objects live.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace lily {

using MemoryMeter = std::atomic<size_t>;

// A share of a meter, as long as it lives. A copy counts once more.
class MeteredBytes {
 public:
  MeteredBytes(std::shared_ptr<MemoryMeter> meter, size_t bytes) : meter_(std::move(meter)), bytes_(bytes) {
    *meter_ += bytes_;
  }
  MeteredBytes(const MeteredBytes& other) : MeteredBytes(other.meter_, other.bytes_) {}
  MeteredBytes& operator=(const MeteredBytes&) = delete;
  ~MeteredBytes() { *meter_ -= bytes_; }

 private:
  std::shared_ptr<MemoryMeter> meter_;
  size_t bytes_;
};

}  // namespace lily
