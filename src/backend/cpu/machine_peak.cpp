#include "backend/cpu/machine_peak.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"

namespace lily::cpu {
namespace {

// One source for both loops of each instruction set. A macro, since a template would be lowered for the baseline
// before it is inlined into a function of another target. `chains` sums at a time hide the latency of an addition and
// fit into the registers beside two operands. Values converge to 2: neither overflow nor denormals slow them down.
// Fetching 2 KiB ahead reads a tenth more than the processor's own guesses do (two cores of a Xeon, 34 against 31 GB/s).
#define LILY_PEAK_LOOPS(isa, target, width, chains)                                                \
  namespace isa {                                                                                  \
  target float multiply_add(int64_t rounds, float factor, float addend) {                          \
    using Vector [[gnu::vector_size(width)]] = float;                                              \
    const Vector a = Vector{} + addend, f = Vector{} + factor;                                     \
    Vector sums[chains];                                                                           \
    for (int c = 0; c < chains; ++c) sums[c] = a * static_cast<float>(c);                          \
    for (int64_t r = 0; r < rounds; ++r) {                                                         \
      for (int c = 0; c < chains; ++c) sums[c] = sums[c] * f + a;                                  \
    }                                                                                              \
    for (int c = 1; c < chains; ++c) sums[0] += sums[c];                                           \
    return sums[0][0];                                                                             \
  }                                                                                                \
  target uint64_t read(const std::byte* data, int64_t bytes) {                                     \
    using Vector [[gnu::vector_size(width)]] = uint64_t;                                           \
    Vector sums[4] = {};                                                                           \
    const auto* vectors = reinterpret_cast<const Vector*>(data);                                   \
    for (int64_t i = 0; i < bytes / width; i += 4) {                                               \
      for (int at = 0; at < 4 * width; at += 64) __builtin_prefetch(data + i * width + 2048 + at); \
      for (int c = 0; c < 4; ++c) sums[c] ^= vectors[i + c];                                       \
    }                                                                                              \
    return ((sums[0] ^ sums[1]) ^ (sums[2] ^ sums[3]))[0];                                         \
  }                                                                                                \
  constexpr Loops loops = {#isa, int64_t{2} * (chains) * (width) / 4, &multiply_add, &read};       \
  }

struct Loops {
  const char* isa;
  int64_t flops_per_round;
  float (*multiply_add)(int64_t rounds, float factor, float addend);
  uint64_t (*read)(const std::byte* data, int64_t bytes);  // aligned, a multiple of 256
};

#if defined(__x86_64__)
LILY_PEAK_LOOPS(avx512, [[gnu::target("avx512f")]], 64, 16)
LILY_PEAK_LOOPS(avx2, [[gnu::target("avx2,fma")]], 32, 12)
LILY_PEAK_LOOPS(portable, , 16, 12)
#elif defined(__aarch64__)
LILY_PEAK_LOOPS(neon, , 16, 16)
#else
LILY_PEAK_LOOPS(portable, , 16, 12)
#endif
#undef LILY_PEAK_LOOPS

const Loops& select_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512::loops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::loops;
  return portable::loops;
#elif defined(__aarch64__)
  return neon::loops;
#else
  return portable::loops;
#endif
}

// Results go here, so that no loop is left out.
std::atomic<uint64_t> sink;

// Best of the passes of a quarter of a second, and of three at least: others use the machine, too.
template <class Pass>
double shortest_seconds(const Pass& pass) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double best = 0;
  for (int i = 0; i < 3 || Clock::now() - start < std::chrono::milliseconds(250); ++i) {
    const auto before = Clock::now();
    pass();
    const double seconds = std::chrono::duration<double>(Clock::now() - before).count();
    if (i == 0 || seconds < best) best = seconds;
  }
  return best;
}

double measure_fma(const Loops& loops, ThreadPool& pool) {
  constexpr int64_t rounds = 1 << 17;  // about a millisecond
  const int64_t chunks = 8 * pool.threads();
  const double seconds = shortest_seconds([&] {
    pool.parallel_for(chunks, [&](int64_t index, int) {
      sink += static_cast<uint64_t>(loops.multiply_add(rounds, 0.5f, 1.0f + static_cast<float>(index & 1)));
    });
  });
  return static_cast<double>(chunks * rounds * loops.flops_per_round) / seconds;
}

constexpr int64_t read_chunk = 4 << 20;

// Half as much again as the cache that the system tells of, and 512 MiB at least: it does not tell how many there are.
int64_t buffer_bytes() {
  int64_t bytes = int64_t{512} << 20;
#ifdef _SC_LEVEL3_CACHE_SIZE
  bytes = std::max<int64_t>(bytes, ::sysconf(_SC_LEVEL3_CACHE_SIZE) / 2 * 3);
#endif
  const int64_t memory = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  if (memory > 0) bytes = std::min(bytes, memory / 8);
  return std::max<int64_t>(bytes / read_chunk, 1) * read_chunk;
}

Result<double> measure_read(const Loops& loops, ThreadPool& pool) {
  const int64_t bytes = buffer_bytes();
  void* mapped = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (mapped == MAP_FAILED) {
    return Error{.where = "memory", .what = "none left to measure its bandwidth", .exit_code = 1};
  }
#ifdef MADV_HUGEPAGE
  ::madvise(mapped, static_cast<size_t>(bytes), MADV_HUGEPAGE);
#endif
  auto* data = static_cast<std::byte*>(mapped);
  const int64_t chunks = bytes / read_chunk;
  // Every page is written to: until then all of them are the one page of zeros, which a cache holds.
  pool.parallel_for(chunks, [&](int64_t i, int) {
    for (int64_t at = 0; at < read_chunk; at += 4096) data[i * read_chunk + at] = std::byte{1};
  });
  const double seconds = shortest_seconds([&] {
    pool.parallel_for(chunks, [&](int64_t i, int) { sink += loops.read(data + i * read_chunk, read_chunk); });
  });
  ::munmap(mapped, static_cast<size_t>(bytes));
  return static_cast<double>(bytes) / seconds;
}

}  // namespace

Result<MachinePeak> measure_machine_peak(int threads) {
  ThreadPool pool(threads);
  const Loops& loops = select_loops();
  LILY_TRY(const double read, measure_read(loops, pool));
  return MachinePeak{.threads = pool.threads(),
                     .isa = loops.isa,
                     .read_bytes_per_second = read,
                     .fma_flops_per_second = measure_fma(loops, pool)};
}

}  // namespace lily::cpu
