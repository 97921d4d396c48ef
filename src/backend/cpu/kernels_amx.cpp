// AVX-512 with the tile registers of AMX (Intel's servers since Sapphire Rapids).
#define LILY_ISA amx
#define LILY_ISA_NAME "amx"
#define LILY_LANES 16
#define LILY_TILE_ROWS 3
#define LILY_TILE_TOKENS 8
#define LILY_SPLIT_TOKENS 6
#include "backend/cpu/kernels_impl.h"
