// Dot products of a few rows of quantised matrices with a vector in threadgroup memory, for decoding. The unit of work is 32
// columns of one row: `bits` words of codes, within one quantisation group. A step is `depth` units of each lane and row; its
// codes are loaded long before they are used, so that many bytes are in flight.
#pragma once

namespace lily::kernels {

constexpr uint unit_columns = 32;

// What a lane holds of one step: of row r, unit d * 32 + lane of the step.
template <uint bits, uint rows, uint depth>
struct UnitRows {
  uint words[rows * depth * bits];
  bf16 scale[rows * depth];  // converted at their use: the load is not waited for
  bf16 bias[rows * depth];
};

// Units are numbered through the whole tensor. group_shift: log2 of the units of a group.
template <uint bits, uint rows, uint depth>
FN void load_unit(thread UnitRows<bits, rows, depth>& to, uint place, device const uint* codes,
                  device const bf16* scales, device const bf16* biases, uint unit, uint group_shift) {
  thread uint* words = to.words + place * bits;
  device const uint* from = codes + unit * bits;
  UNROLL
  for (uint i = 0; i < bits;) {
    if (bits % 4 == 0) {
      const uint4 v = load_uint4(from + i);
      words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
      i += 4;
    } else if (bits % 2 == 0) {
      const uint2 v = load_uint2(from + i);
      words[i] = v.x, words[i + 1] = v.y;
      i += 2;
    } else {
      words[i] = from[i];
      i += 1;
    }
  }
  if (bits < 16) {
    to.scale[place] = scales[unit >> group_shift];
    to.bias[place] = biases[unit >> group_shift];
  }
}

// A unit that counts nothing.
template <uint bits, uint rows, uint depth>
FN void clear_unit(thread UnitRows<bits, rows, depth>& to, uint place) {
  UNROLL
  for (uint i = 0; i < bits; ++i) to.words[place * bits + i] = 0;
  to.scale[place] = to_bf16(0);
  to.bias[place] = to_bf16(0);
}

// 1 + code / 2^bits for code i of a unit: its bits go to the top of the mantissa, which is cheaper than a conversion.
template <uint bits>
FN float code_fraction(thread const uint* words, uint i) {
  const uint word = i * bits / 32, low = i * bits % 32, top = 23 - bits;
  const uint mask = ((1u << bits) - 1) << top;
  uint v = low > top ? words[word] >> (low > top ? low - top : 0) : words[word] << (low > top ? 0 : top - low);
  if (low + bits > 32) v |= words[word + 1] << (32 - low + top);  // the rest is in the next word
  return as_float(merge_bits(v, mask, 0x3f800000u));
}

// Where float4 `f` of a step's vector lies in threadgroup memory, in float4: the lanes of a load read neighbouring ones, and
// the odd stride spreads the stores.
FN uint staged_place(uint f) { return (f / 256 * 8 + f % 8) * 33 + f / 8 % 32; }
template <uint depth>
struct Staged {
  static constexpr uint floats = depth * 8 * 33 * 4;  // of threadgroup memory
  static constexpr uint vectors = depth * 256;        // float4 of a step
  static constexpr uint columns = depth * 1024;       // of a step
};

// sums[r] += this lane's part of row r < count times the staged vector, of which `units` units count.
// sum (code * scale + bias) x = 2^bits scale * sum (1 + code / 2^bits) x + (bias - 2^bits scale) * sum x
template <uint bits, uint rows, uint depth>
FN void add_products(thread float* sums, thread const UnitRows<bits, rows, depth>& unit, uint count,
                     threadgroup const float* staged, uint units, uint lane) {
  UNROLL
  for (uint d = 0; d < depth; ++d) {
    if (d * 32 >= units) break;
    float x[unit_columns], total = 0;
    UNROLL
    for (uint i = 0; i < 8; ++i) {
      const float4 v = load_float4(staged + ((d * 8 + i) * 33 + lane) * 4);
      x[4 * i] = v.x, x[4 * i + 1] = v.y, x[4 * i + 2] = v.z, x[4 * i + 3] = v.w;
      total += (v.x + v.y) + (v.z + v.w);
    }
    UNROLL
    for (uint r = 0; r < rows; ++r) {
      if (r >= count) break;
      const uint place = r * depth + d;
      thread const uint* words = unit.words + place * bits;
      float product = 0;
      if (bits == 16) {
        UNROLL
        for (uint i = 0; i < unit_columns; i += 2) {
          const float2 w = unpack_bf16(words[i / 2]);
          product += w.x * x[i];
          product += w.y * x[i + 1];
        }
        sums[r] += product;
      } else {
        UNROLL
        for (uint i = 0; i < unit_columns; ++i) product += code_fraction<bits>(words, i) * x[i];
        const float scale = to_float(unit.scale[place]) * float(1u << bits);
        sums[r] += scale * product + (to_float(unit.bias[place]) - scale) * total;
      }
    }
  }
}

FN uint group_shift(uint group_size) { return popcount_u(group_size / unit_columns - 1); }  // a power of 2

// Units that a lane takes of each row at once: fewer where their codes fill more registers.
template <uint bits>
struct UnitDepth {
  static constexpr uint depth = bits <= 6 ? 2 : 1;
};

// A step of x, times weight, by 128 threads; zeros behind the last column. Returns this thread's part of the sum of x squared.
template <uint depth>
FN float stage_weighed(threadgroup float* staged, device const float* x, device const float* weight, uint step,
                       uint cols, uint thread_index) {
  float squares = 0;
  UNROLL
  for (uint i = 0; i < Staged<depth>::vectors / 128; ++i) {
    const uint f = i * 128 + thread_index, column = step * Staged<depth>::columns + f * 4;
    float4 v;
    v.x = v.y = v.z = v.w = 0;
    if (column < cols) {
      const float4 w = load_float4(weight + column);
      v = load_float4(x + column);
      squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
      v.x *= w.x, v.y *= w.y, v.z *= w.z, v.w *= w.w;
    }
    store_float4(staged + staged_place(f) * 4, v);
  }
  return squares;
}

}  // namespace lily::kernels
