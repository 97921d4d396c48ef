#include <cstring>

#include "backend/cpu/kernels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>

#include "backend/cpu/amx.h"
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace lily::cpu {

namespace portable {
extern const Kernels kernels;
}
#if defined(__x86_64__)
namespace avx512 {
extern const Kernels kernels;
}
namespace avx2 {
extern const Kernels kernels;
}
#elif defined(__aarch64__)
namespace neon {
extern const Kernels kernels;
}
#endif

namespace {

#if defined(__aarch64__)
bool has_dot_product() {
#ifdef __linux__
  return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
  return true;  // every Apple chip
#endif
}
#endif

struct Candidate {
  const Kernels* kernels;
  bool runs_here;
};

#if defined(__x86_64__) && defined(__linux__)
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const unsigned tile = 1u << 24, int8 = 1u << 25;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & tile) && (d & int8) && enable_amx();
}

// AVX-512's kernels, but for the product of many tokens.
const Kernels& amx_kernels() {
  static const SplitKernels split = [] {
    SplitKernels kernels = *avx512::kernels.split;
    kernels.gemm = gemm_amx;
    return kernels;
  }();
  static const Kernels kernels = [] {
    Kernels table = avx512::kernels;
    table.isa = "amx";
    table.split = &split;
    return table;
  }();
  return kernels;
}
#endif

}  // namespace

const Kernels* select_kernels(const char* isa) {
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vnni");
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  const Candidate best_first[] = {
#if defined(__x86_64__) && defined(__linux__)
    {&amx_kernels(), has_avx512 && has_amx()},
#endif
#if defined(__x86_64__)
    {&avx512::kernels, has_avx512},
    {&avx2::kernels, has_avx2},
#elif defined(__aarch64__)
    {&neon::kernels, has_dot_product()},
#endif
    {&portable::kernels, true},
  };
  for (const Candidate& candidate : best_first) {
    const bool wanted = *isa == '\0' || std::strcmp(isa, candidate.kernels->isa) == 0;
    if (wanted && candidate.runs_here) return candidate.kernels;
  }
  return nullptr;
}

}  // namespace lily::cpu
