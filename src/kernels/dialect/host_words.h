// The words of the dialect that are macros on the host. `thread` and its kin are names in the standard library, too.
#pragma once

#include "kernels/dialect/host.h"

#define device
#define threadgroup
#define constant
#define thread
#define FN static inline
#define UNROLL
#define KERNEL(threads, name, ...) void name(__VA_ARGS__)
#define KERNEL_LARGE(threads, name, ...) void name(__VA_ARGS__)
#define IN(i, T, name) const T* name
#define WEIGHTS(i, T, name) const T* name
#define OUT(i, T, name) T* name
#define INOUT(i, T, name) T* name
#define ARGS(i, T, name) const T& name
#define THREAD_IDS                                                            \
  [[maybe_unused]] const uint lane = host::thread_ids().lane;                 \
  [[maybe_unused]] const uint simdgroup = host::thread_ids().simdgroup;       \
  [[maybe_unused]] const uint thread_index = host::thread_ids().thread_index; \
  [[maybe_unused]] const uint3 group = host::thread_ids().group;
#define SHARED(T, name, count) T* const name = static_cast<T*>(host::shared_memory(sizeof(T), count, #name))
