// Numbers of the schedules that differ between devices.
#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"
#include "backend/gpu/device.h"
#include "model/config.h"

namespace lily::gpu {

// What makes the engine fast. `lily bench --ablate` switches one off at a time; the plain form then does the same work
// (backend/gpu/unfused.cpp).
struct Mechanisms {
  bool fused_dequantisation = true;  // else a matrix goes to memory as bf16, and a 16-bit product reads it
  bool resident_routing = true;      // else the host groups the rows of the experts, and every layer waits for it
  bool adaptive_tile = true;         // else tiles have 64 rows
  bool register_scan = true;         // else the recurrent state goes through memory at every token
  bool chunking = true;              // else a prompt is one chunk
  bool token_handoff = true;         // else the host sees a token before the next step starts
  bool concurrency = true;           // else every operation waits for the one before
  bool gate_up_fusion = true;        // else norm, choice of experts, gate, up and activation are kernels of their own
  bool down_fusion = true;           // else the experts' outputs go to memory and are summed from there
  bool qk_fusion = true;             // else queries, new key and new value are made by a kernel of their own
  bool norm_fusion = true;           // else the recurrent update's output goes to memory before its norm and gate
  bool coalesced_kv = true;          // else lanes stride over keys
  bool gqa_packing = true;           // else each query head reads the keys and values of its KV head for itself
  bool split_attention = true;       // else a KV head has one threadgroup
};

struct Tuning {
  uint32_t prefill_chunk = 2048;  // tokens computed together
  uint32_t split_tokens = 32768;  // of context for one threadgroup of decode attention, before it is split
  uint32_t max_splits = 1;        // threadgroups a KV head; a power of two
  uint32_t gemv_groups = 1;       // threadgroups that a product of one row is cut into, as far as it has the rows
  uint32_t sample_parts = 32;     // of the vocabulary
  Mechanisms mechanisms;
};

// How the rows of a matrix are dealt to `groups` threadgroups of 8 simdgroups for the product with one row.
struct RowCut {
  uint32_t simd_rows;  // of a simdgroup at a time, 1 to 4
  uint32_t passes;
  uint32_t groups;  // threadgroups that it takes
};

// The same for each as far as it can be, and few passes of many rows rather than many of few.
RowCut cut_rows(uint32_t rows, uint32_t groups);

struct NamedMechanism {
  Mechanism mechanism;
  bool Mechanisms::*flag;
};
std::span<const NamedMechanism> named_mechanisms();

Tuning default_tuning(const DeviceTraits& traits, const ModelConfig& config);

}  // namespace lily::gpu
