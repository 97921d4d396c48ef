#include <cstring>

#include "backend/cpu/kernels.h"

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

struct Candidate {
  const Kernels* kernels;
  bool runs_here;
};

}  // namespace

const Kernels* select_kernels(const char* isa) {
#if defined(__x86_64__)
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  const Candidate best_first[] = {
#if defined(__x86_64__)
    {&avx512::kernels, has_avx512},
    {&avx2::kernels, has_avx2},
#elif defined(__aarch64__)
    {&neon::kernels, true},
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
