// The list behind catalog.h: X(name, threads, accesses, arguments).
#pragma once

#define LILY_EACH_WIDTH(X, name, ...) \
  X(name##_2, __VA_ARGS__)            \
  X(name##_3, __VA_ARGS__)            \
  X(name##_4, __VA_ARGS__)            \
  X(name##_5, __VA_ARGS__)            \
  X(name##_6, __VA_ARGS__)            \
  X(name##_8, __VA_ARGS__)            \
  X(name##_16, __VA_ARGS__)

#define LILY_EACH_TILE(X, name, ...)         \
  LILY_EACH_WIDTH(X, name##_32, __VA_ARGS__) \
  X(name##_16_4, __VA_ARGS__)                \
  X(name##_16_8, __VA_ARGS__)                \
  X(name##_16_16, __VA_ARGS__)               \
  X(name##_64_4, __VA_ARGS__)                \
  X(name##_64_8, __VA_ARGS__)                \
  X(name##_64_16, __VA_ARGS__)

#define LILY_DENSE_KERNELS(X)                            \
  X(rms_norm, 256, "rrw", NormArgs)                      \
  LILY_EACH_WIDTH(X, embed, 128, "rrrrw", EmbedArgs)     \
  LILY_EACH_WIDTH(X, norm_gemv, 256, "rrrrrw", GemvArgs) \
  LILY_EACH_WIDTH(X, gemv_add, 256, "rrrru", GemvArgs)   \
  LILY_EACH_TILE(X, gemm, 128, "rrrru", GemmArgs)

#define LILY_DELTA_KERNELS(X)                    \
  X(delta_step, 512, "rrrrreweww", DeltaArgs)    \
  X(delta_prepare, 128, "rrrrrrwwww", DeltaArgs) \
  X(delta_scan, 128, "rrrrww", DeltaArgs)        \
  X(delta_norm, 128, "rrrw", DeltaArgs)

#define LILY_ATTENTION_KERNELS(X)                      \
  X(attend_step, 256, "rrrreeuww", AttentionArgs)      \
  X(attend_merge, 256, "rrw", AttentionArgs)           \
  X(attention_prepare, 256, "rrrrrruw", AttentionArgs) \
  X(attend_chunk, 128, "rrrrrw", AttentionArgs)

#define LILY_MOE_KERNELS(X)                                           \
  LILY_EACH_WIDTH(X, experts_gate_up, 128, "rrrrrrrrrw", MoeArgs)     \
  LILY_EACH_WIDTH(X, experts_down, 256, "rerrru", MoeArgs)            \
  X(route, 256, "rww", MoeArgs)                                       \
  X(group_count, 256, "rw", GroupArgs)                                \
  X(group_map, 256, "rww", GroupArgs)                                 \
  X(group_scatter, 256, "rrww", GroupArgs)                            \
  LILY_EACH_TILE(X, moe_gate_up, 128, "rrrrrrrrrrw", GroupedGemmArgs) \
  LILY_EACH_TILE(X, moe_down, 128, "rrrrrrw", GroupedGemmArgs)        \
  X(moe_combine, 256, "rrru", CombineArgs)

#define LILY_SAMPLE_KERNELS(X)           \
  X(sample_parts, 256, "rw", SampleArgs) \
  X(sample_pick, 256, "ruw", SampleArgs)

#define LILY_PEAK_KERNELS(X) X(measure_tiles, 128, "w", PeakArgs)

#define LILY_UNFUSED_KERNELS(X)                                  \
  X(dequantize_2, 256, "rrrrw", DequantizeArgs)                  \
  X(dequantize_3, 256, "rrrrw", DequantizeArgs)                  \
  X(dequantize_4, 256, "rrrrw", DequantizeArgs)                  \
  X(dequantize_5, 256, "rrrrw", DequantizeArgs)                  \
  X(dequantize_6, 256, "rrrrw", DequantizeArgs)                  \
  X(dequantize_8, 256, "rrrrw", DequantizeArgs)                  \
  LILY_EACH_WIDTH(X, expert_product, 128, "rrrrrw", ProductArgs) \
  X(rms_norm_float, 256, "rrw", NormArgs)                        \
  X(silu_multiply, 256, "rrw", CountArgs)                        \
  X(weighted_sum, 256, "rru", CombineArgs)                       \
  X(delta_update, 512, "rrrrrwrww", DeltaArgs)                   \
  X(norm_gate, 128, "rrrw", DeltaArgs)                           \
  X(prepare_step, 256, "rrrrrruw", AttentionArgs)                \
  X(attend_prepared, 256, "rrrruww", AttentionArgs)              \
  X(attend_alone, 256, "rrrrrruww", AttentionArgs)               \
  X(attend_strided, 256, "rrrrrruww", AttentionArgs)

#define LILY_KERNELS(X)     \
  LILY_PEAK_KERNELS(X)      \
  LILY_DENSE_KERNELS(X)     \
  LILY_DELTA_KERNELS(X)     \
  LILY_ATTENTION_KERNELS(X) \
  LILY_MOE_KERNELS(X)       \
  LILY_SAMPLE_KERNELS(X)    \
  LILY_UNFUSED_KERNELS(X)
