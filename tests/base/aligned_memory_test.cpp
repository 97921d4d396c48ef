#include "base/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <vector>

#include "base/aligned_vector.h"

namespace lily {
namespace {

TEST(AlignedMemory, AlignedAndWritableOfEverySize) {
  for (const size_t alignment : {size_t{8}, size_t{64}, size_t{4096}, size_t{2} << 20}) {
    for (const size_t bytes : {size_t{1}, size_t{63}, size_t{4097}, size_t{1} << 21, (size_t{1} << 21) + 1}) {
      void* data = allocate_aligned(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % alignment, 0u);
      std::memset(data, 1, bytes);
      free_aligned(data, bytes, alignment);
    }
  }
  free_aligned(nullptr, 5, 64);
}

#ifdef __linux__
// MiB that the process holds.
size_t resident() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0, held = 0;
  file >> all >> held;
  return held * 4096 >> 20;
}

// Snapshots come and go, beside what a step of the model needs, and the memory does not grow with their number.
TEST(AlignedMemory, PC_13_WhatIsFreedIsTakenAgain) {
  constexpr size_t layers = 8, kept = 24;
  std::minstd_rand random(1);
  std::deque<std::vector<AlignedVector<std::byte>>> snapshots;
  size_t before = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<AlignedVector<std::byte>> step(8);
    for (auto& buffer : step) buffer.resize(random() % (size_t{300} << 10));
    auto& snapshot = snapshots.emplace_back();
    for (size_t layer = 0; layer < layers; ++layer) {
      snapshot.emplace_back(size_t{12} << 10);
      snapshot.emplace_back(size_t{256} << 10);
    }
    if (snapshots.size() > kept) snapshots.erase(snapshots.begin() + static_cast<int>(random() % kept));
    if (i == 100) before = resident();
  }
  EXPECT_LE(resident(), before + 2);
}
#endif

}  // namespace
}  // namespace lily
