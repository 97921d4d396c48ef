#include <cstring>

#include "backend/cpu/kernels.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace lily::cpu {

namespace portable {
extern const Kernels kernels;
}
#if defined(__x86_64__) && defined(__linux__)
namespace amx {
extern const Kernels kernels;
}
#endif
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
// Whether the processor has the tile registers and the system gives them, to this process and its later threads.
bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned tile = 1u << 24, int8 = 1u << 25;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & tile) || !(d & int8)) return false;
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return __builtin_cpu_supports("avx512vbmi") && ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
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
    {&amx::kernels, has_avx512 && has_amx()},
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
