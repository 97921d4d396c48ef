// Full attention: what queries and keys go through before they meet, and the KV pool.
#pragma once

#include "kernels/attention_place.h"

namespace lily::kernels {

// Dimension 8 * lane and the seven after it of a head that a simdgroup holds.
struct HeadPart {
  float v[8];
};

FN HeadPart head_part(device const float* from, uint lane) {
  const float4 a = load_float4(from + lane * 8), b = load_float4(from + lane * 8 + 4);
  HeadPart part;
  part.v[0] = a.x, part.v[1] = a.y, part.v[2] = a.z, part.v[3] = a.w;
  part.v[4] = b.x, part.v[5] = b.y, part.v[6] = b.z, part.v[7] = b.w;
  return part;
}

FN HeadPart head_part(device const bf16* from, uint lane) {
  const uint4 packed = load_uint4(from + lane * 8);
  const float2 a = unpack_bf16(packed.x), b = unpack_bf16(packed.y), c = unpack_bf16(packed.z),
               d = unpack_bf16(packed.w);
  HeadPart part;
  part.v[0] = a.x, part.v[1] = a.y, part.v[2] = b.x, part.v[3] = b.y;
  part.v[4] = c.x, part.v[5] = c.y, part.v[6] = d.x, part.v[7] = d.y;
  return part;
}

FN uint4 pack_part(HeadPart part) {
  uint4 packed;
  packed.x = pack_bf16(part.v[0], part.v[1]);
  packed.y = pack_bf16(part.v[2], part.v[3]);
  packed.z = pack_bf16(part.v[4], part.v[5]);
  packed.w = pack_bf16(part.v[6], part.v[7]);
  return packed;
}

FN void normalize_part(thread HeadPart& part, device const float* weight, float eps, uint lane) {
  float squares = 0;
  UNROLL
  for (uint i = 0; i < 8; ++i) squares += part.v[i] * part.v[i];
  const float scale = rsqrt_f(simd_sum(squares) / float(head_dim) + eps);
  UNROLL
  for (uint i = 0; i < 8; ++i) part.v[i] *= scale * weight[lane * 8 + i];
}

// Cosines and sines of eight neighbouring frequencies from the table of angles: pairs (cos, sin).
struct Angles {
  float4 v[4];
};
FN Angles load_angles(device const float* from) {
  Angles angles;
  UNROLL
  for (uint i = 0; i < 4; ++i) angles.v[i] = load_float4(from + i * 4);
  return angles;
}

// Turns the pairs (i, i + rotary_dim / 2). The angle of a position is the sum of the angles of position % rope_low and of the
// rest, which the table has. rotary_dim is a multiple of 16, so that a lane's partner is one lane.
FN void rotate_part(thread HeadPart& part, device const float* rope, uint rotary_dim, uint position, uint lane) {
  const uint half_lanes = rotary_dim / 16, half_dim = rotary_dim / 2;
  const bool turns = lane < 2 * half_lanes, second = lane >= half_lanes;
  const uint partner = !turns ? lane : second ? lane - half_lanes : lane + half_lanes;
  const uint first = turns ? lane * 8 % half_dim * 2 : 0;
  const Angles low = load_angles(rope + position % rope_low * rotary_dim + first);
  const Angles high = load_angles(rope + (rope_low + position / rope_low) * rotary_dim + first);
  UNROLL
  for (uint i = 0; i < 8; ++i) {
    const float4 l = low.v[i / 2], h = high.v[i / 2];
    const float low_cos = i % 2 ? l.z : l.x, low_sin = i % 2 ? l.w : l.y;
    const float high_cos = i % 2 ? h.z : h.x, high_sin = i % 2 ? h.w : h.y;
    const float cosine = low_cos * high_cos - low_sin * high_sin, sine = low_cos * high_sin + low_sin * high_cos;
    const float other = simd_shuffle(part.v[i], partner);
    const float turned = part.v[i] * cosine + (second ? other * sine : -other * sine);
    part.v[i] = turns ? turned : part.v[i];
  }
}

// Queries [n, heads, D] and the pool's keys and values from a chunk's projections: 8 (token, head) pairs a threadgroup, one a
// simdgroup. The heads of a token: queries, then KV heads.
KERNEL(256, attention_prepare, IN(0, bf16, projections), WEIGHTS(1, float, q_norm), WEIGHTS(2, float, k_norm),
       WEIGHTS(3, float, rope), IN(4, SequenceStep, step), IN(5, uint, blocks), INOUT(6, bf16, pool), OUT(7, bf16, q),
       ARGS(8, AttentionArgs, a)) {
  THREAD_IDS
  wait_for_inputs();
  const uint all_heads = a.heads + a.kv_heads, pair = group.x * 8 + simdgroup;
  const uint token = pair / all_heads, head = pair % all_heads;
  if (token >= a.n) return;  // the whole simdgroup, and there is no barrier
  device const bf16* row = projections + token * a.stride;
  const uint position = step[0].position + token;
  if (head < a.heads) {
    HeadPart part = head_part(row + head * 2 * head_dim, lane);
    normalize_part(part, q_norm, a.eps, lane);
    rotate_part(part, rope, a.rotary_dim, position, lane);
    UNROLL
    for (uint i = 0; i < 8; ++i) part.v[i] *= 0.0625f;  // 1 / sqrt(head_dim)
    store_uint4(q + (token * a.heads + head) * head_dim + lane * 8, pack_part(part));
    return;
  }
  const uint kv_head = head - a.heads;
  device const bf16* keys = row + 2 * a.heads * head_dim;
  device bf16* to = pool + key_place(blocks, a, kv_head, position) + lane * 8;
  HeadPart part = head_part(keys + kv_head * head_dim, lane);
  normalize_part(part, k_norm, a.eps, lane);
  rotate_part(part, rope, a.rotary_dim, position, lane);
  store_uint4(to, pack_part(part));
  store_uint4(to + value_distance(a), load_uint4(keys + (a.kv_heads + kv_head) * head_dim + lane * 8));
}

}  // namespace lily::kernels
