// Mixture of experts: routing, the order of rows for grouped products, and their sum.
#pragma once

#include "kernels/routing.h"

namespace lily::kernels {

// One token's slots.
KERNEL(256, route, IN(0, float, logits), OUT(1, uint, choices), OUT(2, float, weights), ARGS(3, MoeArgs, a)) {
  THREAD_IDS
  SHARED(uint, best, 2 * 8 * max_slots);
  SHARED(uint, chosen, 2 * max_slots);
  wait_for_inputs();
  const uint top_k = a.experts == 0 ? 0 : a.top_k, slots = top_k + a.shared_parts;
  device const float* row = logits + group.x * a.logits_stride;
  if (top_k > 0) choose_experts<8>(row, a.experts, top_k, best, chosen, thread_index);
  if (simdgroup == 0) {
    const float weight = slot_weight(row, a.experts, top_k, a.shared_parts, chosen, lane);
    if (lane < slots) {
      choices[group.x * slots + lane] = lane < top_k ? chosen[lane] : a.experts + lane - top_k;
      weights[group.x * slots + lane] = weight;
    }
  }
}

constexpr uint no_choice = 0xffffffffu;

// Choices first to first + 3; none behind the last.
FN uint4 load_choices(device const uint* choices, uint first, uint total) {
  if (first + 4 <= total) return load_uint4(choices + first);
  uint4 v;
  v.x = first < total ? choices[first] : no_choice;
  v.y = first + 1 < total ? choices[first + 1] : no_choice;
  v.z = first + 2 < total ? choices[first + 2] : no_choice;
  v.w = no_choice;
  return v;
}

// The pairs of choices [begin, end) that chose `wanted`, by `threads` threads with several loads in flight: this thread's part.
FN uint count_choices(device const uint* choices, uint begin, uint end, uint wanted, uint thread_index, uint threads) {
  uint count = 0;
  for (uint first = begin + thread_index * 4; first < end; first += threads * 16) {
    uint4 v[4];
    UNROLL
    for (uint i = 0; i < 4; ++i) v[i] = load_choices(choices, first + i * threads * 4, end);
    UNROLL
    for (uint i = 0; i < 4; ++i) {
      count += uint(v[i].x == wanted) + uint(v[i].y == wanted) + uint(v[i].z == wanted) + uint(v[i].w == wanted);
    }
  }
  return count;
}

// Every threadgroup counts one group's pairs: no atomics, and the choices stay in cache.
KERNEL(256, group_count, IN(0, uint, choices), OUT(1, uint, counts), ARGS(2, GroupArgs, a)) {
  THREAD_IDS
  SHARED(uint, sums, 8);
  wait_for_inputs();
  const uint count = simd_total(count_choices(choices, 0, a.n * a.slots, group.x, thread_index, 256));
  if (lane == 0) sums[simdgroup] = count;
  threadgroup_sync();
  if (thread_index == 0) {
    uint total = 0;
    for (uint i = 0; i < 8; ++i) total += sums[i];
    counts[group.x] = total;
  }
}

// Prefix sums of the groups' rows and of their blocks; every thread has a few neighbouring groups.
KERNEL(256, group_map, IN(0, uint, counts), OUT(1, uint, starts), OUT(2, uint, blocks), ARGS(3, GroupArgs, a)) {
  THREAD_IDS
  SHARED(uint, row_sums, 8);
  SHARED(uint, block_sums, 8);
  wait_for_inputs();
  const uint each = (a.groups + 255) / 256;
  const uint first = min_u(thread_index * each, a.groups), end = min_u(first + each, a.groups);
  uint rows = 0, count = 0;
  for (uint g = first; g < end; ++g) {
    rows += counts[g];
    count += (counts[g] + a.tile_rows - 1) / a.tile_rows;
  }
  const uint rows_up_to = simd_prefix_sum(rows, lane), count_up_to = simd_prefix_sum(count, lane);
  if (lane == 31) {
    row_sums[simdgroup] = rows_up_to;
    block_sums[simdgroup] = count_up_to;
  }
  threadgroup_sync();
  uint row = rows_up_to - rows, block = count_up_to - count;
  for (uint i = 0; i < simdgroup; ++i) {
    row += row_sums[i];
    block += block_sums[i];
  }
  for (uint g = first; g < end; ++g) {
    starts[g] = row;
    const uint next = row + counts[g];
    for (uint r = row; r < next; r += a.tile_rows, ++block) {
      blocks[1 + 2 * block] = g;
      blocks[2 + 2 * block] = r;
    }
    row = next;
  }
  if (thread_index == 255) {
    starts[a.groups] = row;
    blocks[0] = block;
  }
}

// Gives the rows of one group to its pairs in ascending order. Every simdgroup has a range of the pairs: it counts, hears of
// the ranges before its own, and goes through its range once more.
KERNEL(256, group_scatter, IN(0, uint, choices), IN(1, uint, starts), OUT(2, uint, pairs), OUT(3, uint, places),
       ARGS(4, GroupArgs, a)) {
  THREAD_IDS
  SHARED(uint, sums, 8);
  wait_for_inputs();
  const uint total = a.n * a.slots, range = (total + 1023) / 1024 * 128;
  const uint begin = min_u(simdgroup * range, total), end = min_u(begin + range, total);
  const uint count = simd_total(count_choices(choices, begin, end, group.x, lane, 32));
  if (lane == 0) sums[simdgroup] = count;
  threadgroup_sync();
  uint row = starts[group.x];
  for (uint i = 0; i < simdgroup; ++i) row += sums[i];
  for (uint first = begin; first < end; first += 512) {
    uint4 v[4];
    UNROLL
    for (uint i = 0; i < 4; ++i) v[i] = load_choices(choices, first + i * 128 + lane * 4, end);
    UNROLL
    for (uint i = 0; i < 4; ++i) {
      const bool chose[4] = {v[i].x == group.x, v[i].y == group.x, v[i].z == group.x, v[i].w == group.x};
      const uint pair = first + i * 128 + lane * 4;
      uint before = 0, found = 0;  // in lanes below; in all
      UNROLL
      for (uint j = 0; j < 4; ++j) {
        const uint lanes = simd_ballot(chose[j]);
        before += popcount_u(lanes & lanes_below(lane));
        found += popcount_u(lanes);
      }
      uint place = row + before;
      UNROLL
      for (uint j = 0; j < 4; ++j) {
        if (chose[j]) {
          pairs[place] = pair + j;
          places[pair + j] = place;
          ++place;
        }
      }
      row += found;
    }
  }
}

FN void add_scaled(thread float* sums, uint4 v, float weight) {
  const uint words[4] = {v.x, v.y, v.z, v.w};
  UNROLL
  for (uint i = 0; i < 4; ++i) {
    const float2 pair = unpack_bf16(words[i]);
    sums[2 * i] += pair.x * weight;
    sums[2 * i + 1] += pair.y * weight;
  }
}

// x[t] += sum over slots of weight * z[place], for one token. A thread has 8 columns of all slots: 12 loads in flight cover the
// slots of most models.
KERNEL(256, moe_combine, IN(0, bf16, z), IN(1, uint, places), IN(2, float, weights), INOUT(3, float, x),
       ARGS(4, CombineArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  const uint first_pair = group.x * a.slots;
  for (uint column = thread_index * 8; column < a.hidden; column += 2048) {
    device float* out = x + group.x * a.hidden + column;
    float4 low = load_float4(out), high = load_float4(out + 4);
    float sums[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    for (uint first = 0; first < a.slots; first += 12) {
      uint4 v[12];
      float weight[12];
      UNROLL
      for (uint s = 0; s < 12; ++s) {
        const uint pair = first_pair + min_u(first + s, a.slots - 1);
        weight[s] = first + s < a.slots ? weights[pair] : 0.0f;
        v[s] = load_uint4(z + places[pair] * a.hidden + column);
      }
      UNROLL
      for (uint s = 0; s < 12; ++s) {
        if (first + s < a.slots) add_scaled(sums, v[s], weight[s]);
      }
    }
    low.x = sums[0], low.y = sums[1], low.z = sums[2], low.w = sums[3];
    high.x = sums[4], high.y = sums[5], high.z = sums[6], high.w = sums[7];
    store_float4(out, low);
    store_float4(out + 4, high);
  }
}

}  // namespace lily::kernels
