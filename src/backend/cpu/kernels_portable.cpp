// Whatever vectors the compiler's default target has (SSE2 on x86-64).
#define LILY_ISA portable
#define LILY_ISA_NAME "portable"
#define LILY_LANES 4
#define LILY_TILE_ROWS 3
#define LILY_TILE_TOKENS 4
#include "backend/cpu/kernels_impl.h"
