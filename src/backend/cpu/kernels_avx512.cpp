// AVX-512 (F, BW, DQ, VL): 32 registers hold a tile of 3 x 8, 3 rows of weights and one of activations.
#define LILY_ISA avx512
#define LILY_ISA_NAME "avx512"
#define LILY_LANES 16
#define LILY_TILE_ROWS 3
#define LILY_TILE_TOKENS 8
#define LILY_SPLIT_TOKENS 6
#include "backend/cpu/kernels_impl.h"
