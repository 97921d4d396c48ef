// Sampling: the best candidates of each part of the vocabulary, then one of the best of all. runtime/sampler.h says what the
// parameters mean. NaN and -infinity are never candidates.
#pragma once

#include "kernels/ordering.h"

namespace lily::kernels {

constexpr uint sample_values = 8;                   // of a thread at a time
constexpr uint sample_chunk = 256 * sample_values;  // of the threadgroup
constexpr uint sample_pool = sample_chunk + max_candidates;
constexpr uint no_token = 0xffffffffu;

// 0 for what is no candidate.
FN uint candidate_key(float logit) {
  const uint key = order_key(logit);
  return key > order_key(as_float(0xff800000u)) ? key : 0;
}

// The best so far, best first: keys [max_candidates], then ids. Ties: the lower id.
// `pool`: keys [sample_pool + 4], then ids; maxima [128]; sums [9].
// Takes in 8 (key, id) of each thread, key 0: none. Whatever is among the `wanted` best is not below the wanted-th largest of
// the maxima of 128 pairs of threads, so few values need their rank counted unless many are equal. Returns how many were at least that large.
FN uint keep_best(thread const uint* keys, thread const uint* ids, uint wanted, uint kept, threadgroup uint* best,
                  threadgroup uint* pool, threadgroup uint* maxima, threadgroup uint* sums, uint thread_index) {
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  uint largest = 0;
  UNROLL
  for (uint i = 0; i < sample_values; ++i) largest = max_u(largest, keys[i]);
  largest = max_u(largest, simd_shuffle_xor(largest, 1));
  if (lane % 2 == 0) maxima[thread_index / 2] = largest;
  threadgroup_sync();
  uint rank = 0;
  const uint half_of_them = lane % 2 * 64;
  UNROLL
  for (uint j = 0; j < 64; j += 4) {
    rank += count_before(load_uint4(maxima + half_of_them + j), half_of_them + j, largest, thread_index / 2);
  }
  rank += simd_shuffle_xor(rank, 1);
  if (lane % 2 == 0 && rank + 1 == wanted) sums[8] = largest;
  threadgroup_sync();
  const uint bar = max_u(max_u(sums[8], 1), kept == wanted ? best[wanted - 1] : 0);
  uint found = 0;
  UNROLL
  for (uint i = 0; i < sample_values; ++i) found += popcount_u(simd_ballot(keys[i] >= bar));
  if (lane == 0) sums[simdgroup] = found;
  threadgroup_sync();
  uint before = kept, count = kept;
  for (uint i = 0; i < 8; ++i) {
    before += i < simdgroup ? sums[i] : 0;
    count += sums[i];
  }
  if (count == kept) return 0;
  threadgroup uint* pool_ids = pool + sample_pool + 4;
  UNROLL
  for (uint i = 0; i < sample_values; ++i) {
    const uint lanes = simd_ballot(keys[i] >= bar);
    if (keys[i] >= bar) {
      const uint place = before + popcount_u(lanes & lanes_below(lane));
      pool[place] = keys[i];
      pool_ids[place] = ids[i];
    }
    before += popcount_u(lanes);
  }
  if (thread_index < kept) {
    pool[thread_index] = best[thread_index];
    pool_ids[thread_index] = best[max_candidates + thread_index];
  }
  if (thread_index < 4) pool[count + thread_index] = 0;
  threadgroup_sync();
  for (uint i = thread_index; i < count; i += 256) {
    const uint key = pool[i], id = pool_ids[i];
    uint larger = 0, equal = 0;
    for (uint j = 0; j < count; j += 4) {
      const uint4 other = load_uint4(pool + j);
      larger += uint(other.x > key) + uint(other.y > key) + uint(other.z > key) + uint(other.w > key);
      equal += uint(other.x == key) + uint(other.y == key) + uint(other.z == key) + uint(other.w == key);
    }
    if (equal > 1) {
      for (uint j = 0; j < count; ++j) larger += uint(pool[j] == key && pool_ids[j] < id);
    }
    if (larger < wanted) {
      best[larger] = key;
      best[max_candidates + larger] = id;
    }
  }
  threadgroup_sync();
  return count - kept;
}

// The best of one slice of the vocabulary. Where it has fewer than wanted, NaN logits follow.
KERNEL(256, sample_parts, IN(0, float, logits), OUT(1, float, candidates), ARGS(2, SampleArgs, a)) {
  THREAD_IDS
  SHARED(uint, best, 2 * max_candidates);
  SHARED(uint, pool, 2 * (sample_pool + 4));
  SHARED(uint, maxima, 128);
  SHARED(uint, sums, 9);
  wait_for_inputs();
  const uint slice = ((a.vocab + a.parts - 1) / a.parts + 3) / 4 * 4;
  const uint begin = min_u(group.x * slice, a.vocab), end = min_u(begin + slice, a.vocab);
  uint kept = 0;
  for (uint chunk = begin; chunk < end; chunk += sample_chunk) {
    uint keys[sample_values], ids[sample_values];
    UNROLL
    for (uint i = 0; i < sample_values; i += 4) {
      const uint first = chunk + i * 256 + thread_index * 4;
      UNROLL
      for (uint j = 0; j < 4; ++j) {
        ids[i + j] = first + j;
        keys[i + j] = 0;
      }
      if (first + 4 <= end) {
        const float4 v = load_float4(logits + first);
        keys[i] = candidate_key(v.x), keys[i + 1] = candidate_key(v.y), keys[i + 2] = candidate_key(v.z),
        keys[i + 3] = candidate_key(v.w);
      } else {
        for (uint j = 0; j < 3; ++j) {
          if (first + j < end) keys[i + j] = candidate_key(logits[first + j]);
        }
      }
    }
    kept = min_u(kept + keep_best(keys, ids, a.candidates, kept, best, pool, maxima, sums, thread_index), a.candidates);
  }
  if (thread_index < a.candidates) {
    device float* out = candidates + (group.x * a.candidates + thread_index) * 2;
    out[0] = thread_index < kept ? key_logit(best[thread_index]) : as_float(0xffffffffu);
    out[1] = as_float(thread_index < kept ? best[max_candidates + thread_index] : no_token);
  }
}

// A number in [0, 1) of (seed, position): two rounds of a 32-bit mixer (multiply and xor-shift; constants of lowbias32 by
// Chris Wellons, public domain) over a counter that steps by the golden ratio, as in SplitMix64.
FN uint mix_bits(uint v) {
  v = (v ^ (v >> 16)) * 0x7feb352du;
  v = (v ^ (v >> 15)) * 0x846ca68bu;
  return v ^ (v >> 16);
}
FN float uniform_number(uint seed_low, uint seed_high, uint position) {
  const uint v = mix_bits(mix_bits(seed_low + (position + 1) * 0x9e3779b9u) ^ seed_high);
  return float(v >> 8) * (1.0f / 16777216.0f);
}

// The place in `best` (keys, best first, `kept` of them) that is drawn. A lane has candidates 2 * lane and 2 * lane + 1. By one
// whole simdgroup.
FN uint draw_candidate(threadgroup const uint* best, uint kept, float temperature, float top_p, float min_p,
                       float uniform, uint lane) {
  const float hottest = key_logit(best[0]), divisor = max_f(temperature, 1e-6f);
  const uint even = 2 * lane, odd = even + 1;
  const float even_weight = even < kept ? exp_f((key_logit(best[even]) - hottest) / divisor) : 0.0f;
  const float odd_weight = odd < kept ? exp_f((key_logit(best[odd]) - hottest) / divisor) : 0.0f;
  // Weights up to and with the candidate.
  const float odd_sum = simd_prefix_sum(even_weight + odd_weight, lane);
  const float below = simd_shuffle(odd_sum, lane > 0 ? lane - 1 : 0), even_before = lane > 0 ? below : 0.0f;
  const float even_sum = even_before + even_weight;
  const float reach = top_p * simd_shuffle(odd_sum, 31);
  // Both cuts leave a front part of the list.
  const bool even_stays = even < kept && (top_p >= 1.0f || even_before < reach) && even_weight >= min_p;
  const bool odd_stays = odd < kept && (top_p >= 1.0f || even_sum < reach) && odd_weight >= min_p;
  const uint left = max_u(popcount_u(simd_ballot(even_stays)) + popcount_u(simd_ballot(odd_stays)), 1);
  const uint last = left - 1;
  const float even_total = simd_shuffle(even_sum, last / 2), odd_total = simd_shuffle(odd_sum, last / 2);
  const float target = uniform * (last % 2 == 0 ? even_total : odd_total);
  return min_u(popcount_u(simd_ballot(even_sum <= target)) + popcount_u(simd_ballot(odd_sum <= target)), last);
}

// Merges the parts' candidates and picks one. Goes through all lists side by side, best first, so that it may stop as soon as
// nothing of a chunk is good enough. Without any candidate: the token is no_token, and 0 in the step.
KERNEL(256, sample_pick, IN(0, float, candidates), INOUT(1, SequenceStep, step), OUT(2, uint, token),
       ARGS(3, SampleArgs, a)) {
  THREAD_IDS
  SHARED(uint, best, 2 * max_candidates);
  SHARED(uint, pool, 2 * (sample_pool + 4));
  SHARED(uint, maxima, 128);
  SHARED(uint, sums, 9);
  wait_for_inputs();
  const uint total = a.parts * a.candidates;
  uint kept = 0;
  for (uint chunk = 0; chunk < total; chunk += sample_chunk) {
    uint keys[sample_values], ids[sample_values];
    UNROLL
    for (uint i = 0; i < sample_values; ++i) {
      const uint entry = chunk + i * 256 + thread_index;
      keys[i] = 0;
      ids[i] = no_token;
      if (entry < total) {
        const uint2 v = load_uint2(candidates + (entry % a.parts * a.candidates + entry / a.parts) * 2);
        keys[i] = candidate_key(as_float(v.x));
        ids[i] = v.y;
      }
    }
    const uint found = keep_best(keys, ids, a.candidates, kept, best, pool, maxima, sums, thread_index);
    kept = min_u(kept + found, a.candidates);
    if (found == 0 && a.parts <= sample_chunk) break;
  }
  if (simdgroup == 0) {
    const uint position = step[0].position;
    uint chosen = 0;
    if (a.temperature > 0.0f && kept > 1) {
      const float uniform = uniform_number(a.seed_low, a.seed_high, position);
      chosen = draw_candidate(best, kept, a.temperature, a.top_p, a.min_p, uniform, lane);
    }
    if (lane == 0) {
      const uint id = kept > 0 ? best[max_candidates + chosen] : no_token;
      token[0] = id;
      step[0].token = kept > 0 ? id : 0;
      step[0].position = position + 1;
    }
  }
}

}  // namespace lily::kernels
