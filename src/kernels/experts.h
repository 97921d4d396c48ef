// The experts of single tokens, for decoding: gate and up with the activation between, then down with the sum over slots.
#pragma once

#include "kernels/routing.h"
#include "kernels/unit_rows.h"

namespace lily::kernels {

// Rows of a simdgroup; 16 of a threadgroup.
constexpr uint expert_rows = 4;  // of gate and of up
constexpr uint down_rows = 2;    // long ones: over all slots

// Units that a lane takes of each row at once: fewer where their codes fill more registers.
template <uint bits>
struct ExpertUnits {
  static constexpr uint depth = bits <= 4 ? 2 : 1;
  static constexpr uint down_depth = bits <= 8 ? 5 : 2;
};

// Where the rows of one simdgroup begin: units through the whole tensor.
struct ExpertPlace {
  uint first;  // of the first row, in the chosen expert
  uint units;  // of a row
  uint shift;
};

template <uint bits, uint depth>
FN void load_gate_up(thread UnitRows<bits, 2 * expert_rows, depth>& to, ExpertPlace place, uint step, uint lane,
                     device const uint* gate_codes, device const bf16* gate_scales, device const bf16* gate_biases,
                     device const uint* up_codes, device const bf16* up_scales, device const bf16* up_biases) {
  UNROLL
  for (uint d = 0; d < depth; ++d) {
    const uint unit = (step * depth + d) * 32 + lane;
    UNROLL
    for (uint r = 0; r < expert_rows; ++r) {
      const uint gate_at = r * depth + d, up_at = (expert_rows + r) * depth + d;
      if (unit < place.units) {
        const uint at = place.first + r * place.units + unit;
        load_unit(to, gate_at, gate_codes, gate_scales, gate_biases, at, place.shift);
        load_unit(to, up_at, up_codes, up_scales, up_biases, at, place.shift);
      } else {
        clear_unit(to, gate_at);
        clear_unit(to, up_at);
      }
    }
  }
}

// silu(gate . x) * (up . x) of 16 rows of the expert of slot group.y, for token group.z. Every threadgroup normalises x and
// finds its expert again: cheaper than kernels of their own, since all of it waits for the same router logits. Shared parts
// are known beforehand, so their first codes come before the inputs do. The norm's factor is applied to the products.
template <uint bits>
FN void experts_gate_up(device const float* x, device const float* weight, device const float* logits,
                        device const uint* gate_codes, device const bf16* gate_scales, device const bf16* gate_biases,
                        device const uint* up_codes, device const bf16* up_scales, device const bf16* up_biases,
                        device float* y, MoeArgs a, threadgroup float* staged, threadgroup float* sums,
                        threadgroup uint* best, threadgroup uint* chosen, uint3 group, uint thread_index) {
  constexpr uint depth = ExpertUnits<bits>::depth;
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint top_k = a.experts == 0 ? 0 : a.top_k, slots = top_k + a.shared_parts, slot = group.y, token = group.z;
  const uint row = group.x * 16 + simdgroup * expert_rows;
  const bool routed = slot < top_k;
  ExpertPlace place;
  place.units = a.hidden / unit_columns;
  place.shift = group_shift(a.group_size);
  place.first = ((a.experts + slot - top_k) * a.width + row) * place.units;
  UnitRows<bits, 2 * expert_rows, depth> rows;
  if (!routed) {
    load_gate_up(rows, place, 0, lane, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases);
  }
  wait_for_inputs();
  x += token * a.hidden;
  logits += token * a.logits_stride;
  float squares = stage_weighed<depth>(staged, x, weight, 0, a.hidden, thread_index);
  if (routed) {
    choose_experts<4>(logits, a.experts, top_k, best, chosen, thread_index);
    place.first = (chosen[slot] * a.width + row) * place.units;
    load_gate_up(rows, place, 0, lane, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases);
  }
  float products[2 * expert_rows];
  for (uint r = 0; r < 2 * expert_rows; ++r) products[r] = 0;
  for (uint step = 0; step * Staged<depth>::columns < a.hidden; ++step) {
    if (step > 0) {
      load_gate_up(rows, place, step, lane, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases);
      threadgroup_sync();
      squares += stage_weighed<depth>(staged, x, weight, step, a.hidden, thread_index);
    }
    threadgroup_sync();
    add_products(products, rows, 2 * expert_rows, staged, place.units - step * depth * 32, lane);
  }
  squares = simd_sum(squares);
  if (lane == 0) sums[simdgroup] = squares;
  threadgroup_sync();
  const float scale = rsqrt_f((sums[0] + sums[1] + sums[2] + sums[3]) / float(a.hidden) + a.eps);
  UNROLL
  for (uint r = 0; r < 2 * expert_rows; ++r) products[r] = simd_sum(products[r]) * scale;
  if (lane == 0) {
    UNROLL
    for (uint r = 0; r < expert_rows; ++r) products[r] *= products[expert_rows + r] / (1.0f + exp_f(-products[r]));
    float4 out;
    out.x = products[0], out.y = products[1], out.z = products[2], out.w = products[3];
    store_float4(y + (token * slots + slot) * a.width + row, out);
  }
}

// Which expert a slot has: a routed one, then the parts of the shared one.
struct ExpertSlots {
  threadgroup const uint* chosen;
  uint experts, top_k;
};
FN uint expert_of(ExpertSlots slots, uint slot) {
  return slot < slots.top_k ? slots.chosen[slot] : slots.experts + slot - slots.top_k;
}

// Rows `row` and row + 1 of the down matrices of all slots, taken for one long row: item i is unit i % units of slot i / units.
template <uint bits, uint depth>
FN void load_down(thread UnitRows<bits, down_rows, depth>& to, ExpertSlots experts, uint step, uint lane, uint row,
                  uint hidden, uint units, uint items, uint shift, device const uint* codes, device const bf16* scales,
                  device const bf16* biases) {
  UNROLL
  for (uint d = 0; d < depth; ++d) {
    const uint item = (step * depth + d) * 32 + lane;
    if (item < items) {
      const uint slot = item / units, expert = expert_of(experts, slot);
      const uint first = (expert * hidden + row) * units + item % units;
      UNROLL
      for (uint r = 0; r < down_rows; ++r) {
        load_unit(to, r * depth + d, codes, scales, biases, first + r * units, shift);
      }
    } else {
      UNROLL
      for (uint r = 0; r < down_rows; ++r) clear_unit(to, r * depth + d);
    }
  }
}

// A step of y of all slots, each times its slot's weight.
template <uint depth>
FN void stage_weighted(threadgroup float* staged, device const float* y, threadgroup const float* weights, uint step,
                       uint width, uint columns, uint thread_index) {
  for (uint f = thread_index; f < Staged<depth>::vectors; f += 256) {
    const uint column = step * Staged<depth>::columns + f * 4;
    float4 v;
    v.x = v.y = v.z = v.w = 0;
    if (column < columns) {
      const float weight = weights[column / width];
      v = load_float4(y + column);
      v.x *= weight, v.y *= weight, v.z *= weight, v.w *= weight;
    }
    store_float4(staged + staged_place(f) * 4, v);
  }
}

// x += the down projections of all slots, of 16 rows for token group.y. One step holds the slots of most models: all of their
// codes are in flight together.
template <uint bits>
FN void experts_down(device const float* y, device const float* logits, device const uint* codes,
                     device const bf16* scales, device const bf16* biases, device float* x, MoeArgs a,
                     threadgroup float* staged, threadgroup uint* best, threadgroup uint* chosen,
                     threadgroup float* weights, uint3 group, uint thread_index) {
  constexpr uint depth = ExpertUnits<bits>::down_depth;
  const uint lane = thread_index % 32, simdgroup = thread_index / 32;
  const uint top_k = a.experts == 0 ? 0 : a.top_k, slots = top_k + a.shared_parts, token = group.y;
  const uint row = group.x * 16 + simdgroup * down_rows;
  const uint units = a.width / unit_columns, items = units * slots, shift = group_shift(a.down_group_size);
  logits += token * a.logits_stride;
  y += token * slots * a.width;
  // The router's logits are older than y, so experts and codes are found before y is there.
  if (top_k > 0) choose_experts<8>(logits, a.experts, top_k, best, chosen, thread_index);
  UnitRows<bits, down_rows, depth> rows;
  const ExpertSlots experts = {chosen, a.experts, top_k};
  load_down(rows, experts, 0, lane, row, a.hidden, units, items, shift, codes, scales, biases);
  if (simdgroup == 0) {
    const float share = slot_weight(logits, a.experts, top_k, a.shared_parts, chosen, lane);
    if (lane < slots) weights[lane] = share;
  }
  wait_for_inputs();
  threadgroup_sync();  // weights
  device float* out = x + token * a.hidden + row;
  const float before = lane < down_rows ? out[lane] : 0.0f;
  float sums[down_rows];
  for (uint r = 0; r < down_rows; ++r) sums[r] = 0;
  for (uint step = 0; step * depth * 32 < items; ++step) {
    if (step > 0) {
      load_down(rows, experts, step, lane, row, a.hidden, units, items, shift, codes, scales, biases);
      threadgroup_sync();
    }
    stage_weighted<depth>(staged, y, weights, step, a.width, slots * a.width, thread_index);
    threadgroup_sync();
    add_products(sums, rows, down_rows, staged, items - step * depth * 32, lane);
  }
  UNROLL
  for (uint r = 0; r < down_rows; ++r) sums[r] = simd_sum(sums[r]);
  if (lane < down_rows) out[lane] = before + (lane == 0 ? sums[0] : sums[1]);
}

#define LILY_EXPERT_KERNELS(bits)                                                                                     \
  KERNEL(128, experts_gate_up_##bits, IN(0, float, x), WEIGHTS(1, float, weight), IN(2, float, logits),               \
         WEIGHTS(3, uint, gate_codes), WEIGHTS(4, bf16, gate_scales), WEIGHTS(5, bf16, gate_biases),                  \
         WEIGHTS(6, uint, up_codes), WEIGHTS(7, bf16, up_scales), WEIGHTS(8, bf16, up_biases), OUT(9, float, y),      \
         ARGS(10, MoeArgs, a)) {                                                                                      \
    THREAD_IDS                                                                                                        \
    SHARED(float, staged, Staged<ExpertUnits<bits>::depth>::floats);                                                  \
    SHARED(float, sums, 4);                                                                                           \
    SHARED(uint, best, 2 * 4 * max_slots);                                                                            \
    SHARED(uint, chosen, 2 * max_slots);                                                                              \
    experts_gate_up<bits>(x, weight, logits, gate_codes, gate_scales, gate_biases, up_codes, up_scales, up_biases, y, \
                          a, staged, sums, best, chosen, group, thread_index);                                        \
  }                                                                                                                   \
  KERNEL(256, experts_down_##bits, IN(0, float, y), IN(1, float, logits), WEIGHTS(2, uint, codes),                    \
         WEIGHTS(3, bf16, scales), WEIGHTS(4, bf16, biases), INOUT(5, float, x), ARGS(6, MoeArgs, a)) {               \
    THREAD_IDS                                                                                                        \
    SHARED(float, staged, Staged<ExpertUnits<bits>::down_depth>::floats);                                             \
    SHARED(uint, best, 2 * 8 * max_slots);                                                                            \
    SHARED(uint, chosen, 2 * max_slots);                                                                              \
    SHARED(float, weights, max_slots);                                                                                \
    experts_down<bits>(y, logits, codes, scales, biases, x, a, staged, best, chosen, weights, group, thread_index);   \
  }
LILY_EXPERT_KERNELS(2)
LILY_EXPERT_KERNELS(3)
LILY_EXPERT_KERNELS(4)
LILY_EXPERT_KERNELS(5)
LILY_EXPERT_KERNELS(6)
LILY_EXPERT_KERNELS(8)
LILY_EXPERT_KERNELS(16)
#undef LILY_EXPERT_KERNELS

}  // namespace lily::kernels
