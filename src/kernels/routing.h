// The experts of a token by its router logits. Used by `route` and, for decoding, by the experts' own kernel.
#pragma once

#include "kernels/ordering.h"

namespace lily::kernels {

// chosen[s] for s < top_k: the expert with the s-th largest of the token's logits (ties: the lower expert), and
// chosen[max_slots + s]: the key of its logit. Every simdgroup picks the best of its own slice one by one, then each of those
// counts how many beat it. All threads of the threadgroup, 32 * simdgroups, take part and may read `chosen` afterwards.
//   best [2 * simdgroups * max_slots], chosen [2 * max_slots]
template <uint simdgroups>
FN void choose_experts(device const float* logits, uint experts, uint top_k, threadgroup uint* best,
                       threadgroup uint* chosen, uint thread_index) {
  constexpr uint most = max_experts / (32 * simdgroups);  // experts of a lane
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint each = (experts + 32 * simdgroups - 1) / (32 * simdgroups), count = simdgroups * top_k;
  const uint first = thread_index * each;
  uint own[most];  // keys; 0: no expert, or picked already
  UNROLL
  for (uint r = 0; r < most; ++r) {
    own[r] = r < each && first + r < experts ? max_u(order_key(logits[first + r]), 1) : 0;
  }
  for (uint s = 0; s < top_k; ++s) {
    uint largest = own[0];
    UNROLL
    for (uint r = 1; r < most; ++r) largest = max_u(largest, own[r]);
    const uint key = simd_max(largest), lanes = simd_ballot(largest == key);
    if ((lanes & lanes_below(lane)) == 0 && largest == key) {  // the first of them
      uint picked = most;
      UNROLL
      for (uint r = 0; r < most; ++r) {
        if (picked == most && own[r] == key) {
          picked = r;
          own[r] = 0;
        }
      }
      best[simdgroup * top_k + s] = key;
      best[count + simdgroup * top_k + s] = first + picked;
    }
  }
  threadgroup_sync();
  // Equal keys stand in the order of their experts, since slices and their lists do.
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
