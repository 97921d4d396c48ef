// The experts of a token by its router logits. Used by `route` and, for decoding, by the experts' own kernel.
#pragma once

#include "kernels/ordering.h"

namespace lily::kernels {

// chosen[s] for s < top_k: the expert with the s-th largest of the token's logits (ties: the lower expert), and
// chosen[max_slots + s]: the key of its logit. Every simdgroup sorts out the best of its own slice by counting how many beat
// each, then every thread does so with one of those. All threads of the threadgroup, 32 * simdgroups, take part and may read
// `chosen` afterwards.
//   keys [max_experts], best [2 * simdgroups * max_slots], chosen [2 * max_slots]
template <uint simdgroups>
FN void choose_experts(device const float* logits, uint experts, uint top_k, threadgroup uint* keys,
                       threadgroup uint* best, threadgroup uint* chosen, uint thread_index) {
  constexpr uint most = max_experts / (32 * simdgroups);  // experts of a lane
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint rows = (experts + 32 * simdgroups - 1) / (32 * simdgroups);
  const uint first = simdgroup * rows * 32;  // of the slice
  threadgroup uint* slice = keys + first;
  uint own[most];
  UNROLL
  for (uint r = 0; r < most; ++r) {
    const uint expert = first + r * 32 + lane;
    own[r] = r < rows && expert < experts ? order_key(logits[expert]) : 0;
  }
  UNROLL
  for (uint r = 0; r < most; ++r) {
    if (r < rows) slice[r * 32 + lane] = own[r];
  }
  simdgroup_sync();
  UNROLL
  for (uint r = 0; r < most; ++r) {
    if (r >= rows) break;
    const uint place = r * 32 + lane;
    uint rank = 0;
    for (uint j = 0; j < rows * 32; j += 4) rank += count_before(load_uint4(slice + j), j, own[r], place);
    if (rank < top_k) {
      best[simdgroup * top_k + rank] = own[r];
      best[(simdgroups + simdgroup) * top_k + rank] = first + place;
    }
  }
  threadgroup_sync();
  // Equal keys stand in the order of their experts, since slices and their lists do.
  const uint count = simdgroups * top_k;
  if (thread_index < count) {
    const uint key = best[thread_index];
    uint rank = 0;
    for (uint j = 0; j < count; j += 4) rank += count_before(load_uint4(best + j), j, key, thread_index);
    if (rank < top_k) {
      chosen[rank] = best[count + thread_index];
      chosen[max_slots + rank] = key;
    }
  }
  threadgroup_sync();
}

// The weight of slot `lane`: softmax over the chosen, then the shared expert's parts, all of them by the same gate; 1 in a
// model without routed experts. By one whole simdgroup.
FN float slot_weight(device const float* logits, uint experts, uint top_k, uint shared_parts,
                     threadgroup const uint* chosen, uint lane) {
  float share = 0;
  if (lane < top_k) share = exp_f(key_logit(chosen[max_slots + lane]) - key_logit(chosen[max_slots]));
  const float total = simd_sum(share);
  if (lane < top_k) return share / total;
  if (experts == 0) return 1;
  return shared_parts > 0 ? 1.0f / (1.0f + exp_f(-logits[experts])) : 0.0f;
}

}  // namespace lily::kernels
