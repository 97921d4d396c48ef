// A random matrix of codes, as kernels/args.h describes it, and its weights.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/dtype.h"

namespace lily::test {

struct CodeMatrix {
  std::vector<uint32_t> codes;           // [rows, cols * bits / 32], LSB first
  std::vector<uint16_t> scales, biases;  // [rows, cols / group_size] bf16; none of 16 bits
  std::vector<float> weights;            // [rows, cols]
};

// Weights of about +-0.1.
inline CodeMatrix random_codes(size_t rows, size_t cols, unsigned bits, size_t group_size, unsigned seed) {
  CodeMatrix m;
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
  m.codes.resize(rows * cols * bits / 32);
  if (bits == 16) {
    for (size_t i = 0; i < rows * cols; ++i) {
      const uint16_t weight = float_to_bf16(uniform(random));
      m.codes[i / 2] |= uint32_t{weight} << (i % 2 * 16);
      m.weights.push_back(bf16_to_float(weight));
    }
    return m;
  }
  const unsigned levels = 1u << bits;
  for (size_t i = 0; i < rows * cols; ++i) {
    if (i % group_size == 0) {
      m.scales.push_back(float_to_bf16(uniform(random) * 2 / static_cast<float>(levels)));
      m.biases.push_back(float_to_bf16(uniform(random)));
    }
    const uint32_t code = static_cast<uint32_t>(random() % levels);
    const size_t bit = i % cols * bits, row = i / cols * (cols * bits / 32);
    m.codes[row + bit / 32] |= code << bit % 32;
    if (bit % 32 + bits > 32) m.codes[row + bit / 32 + 1] |= code >> (32 - bit % 32);
    m.weights.push_back(static_cast<float>(code) * bf16_to_float(m.scales.back()) + bf16_to_float(m.biases.back()));
  }
  return m;
}

}  // namespace lily::test
