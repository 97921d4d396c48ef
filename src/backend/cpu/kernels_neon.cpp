// NEON (every 64-bit Arm): 32 registers hold a tile of 4 x 6, 4 rows of weights and one of activations.
#define LILY_ISA neon
#define LILY_ISA_NAME "neon"
#define LILY_LANES 4
#define LILY_TILE_ROWS 4
#define LILY_TILE_TOKENS 6
#define LILY_SPLIT_TOKENS 4
#include "backend/cpu/kernels_impl.h"
