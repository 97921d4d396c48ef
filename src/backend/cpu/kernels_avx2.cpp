// AVX2 with FMA: 16 registers hold a tile of 3 x 4, 3 rows of weights and one of activations.
#define LILY_ISA avx2
#define LILY_ISA_NAME "avx2"
#define LILY_LANES 8
#define LILY_TILE_ROWS 3
#define LILY_TILE_TOKENS 4
#define LILY_SPLIT_TOKENS 4
#include "backend/cpu/kernels_impl.h"
