// A sequence of full attention in plain loops and double: what its kernels are to make of its projections.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/args.h"
#include "support/kernel_run.h"

namespace lily::test {

struct Heads {
  unsigned heads, kv_heads;
};

// A sequence of tokens with projections, and what the kernels are to make of them.
struct Sequence {
  Sequence(Heads with, unsigned tokens, unsigned seed)
      : h(with),
        n(tokens),
        stride((2 * h.heads + 2 * h.kv_heads) * dim),
        projections(normal_numbers(size_t{n} * stride, seed)),
        q_norm(normal_numbers(dim, seed + 1)),
        k_norm(normal_numbers(dim, seed + 2)),
        blocks((n + block_tokens - 1) / block_tokens) {
    std::iota(blocks.begin(), blocks.end(), 1u);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(seed));
    pool.assign(size_t(blocks.size() + 1) * 2 * kv_layers * h.kv_heads * block_tokens * dim, 0x7fc0);  // NaN
    for (unsigned t = 0; t < n; ++t) {
      for (unsigned g = 0; g < h.kv_heads; ++g) {
        const float* row = &projections[size_t{t} * stride + size_t{2} * h.heads * dim];
        const std::vector<double> key = turned(row + g * dim, k_norm, t);
        for (unsigned d = 0; d < dim; ++d) {
          pool[place(t, g, 0) + d] = float_to_bf16(static_cast<float>(key[d]));
          pool[place(t, g, 1) + d] = float_to_bf16(row[(h.kv_heads + g) * dim + d]);
        }
      }
    }
  }

  size_t place(unsigned token, unsigned kv_head, unsigned values) const {
    const size_t head =
        ((size_t{blocks[token / block_tokens]} * kv_layers + kv_layer) * 2 + values) * h.kv_heads + kv_head;
    return (head * block_tokens + token % block_tokens) * dim;
  }

  std::vector<double> turned(const float* head, const std::vector<float>& norm, unsigned position) const {
    double squares = 0;
    for (unsigned d = 0; d < dim; ++d) squares += double{head[d]} * head[d];
    std::vector<double> out(dim);
    for (unsigned d = 0; d < dim; ++d) out[d] = head[d] / std::sqrt(squares / dim + 1e-6) * norm[d];
    for (unsigned i = 0; i < rotary / 2; ++i) {
      const double angle = position * std::pow(1e7, -2.0 * i / rotary), c = std::cos(angle), s = std::sin(angle);
      const double a = out[i], b = out[i + rotary / 2];
      out[i] = a * c - b * s;
      out[i + rotary / 2] = b * c + a * s;
    }
    return out;
  }

  // The gated result of one token and head, over the keys and values of the pool.
  std::vector<double> attend(unsigned token, unsigned head) const {
    const float* row = &projections[size_t{token} * stride + size_t{2} * head * dim];
    const std::vector<double> q = turned(row, q_norm, token);
    const unsigned kv_head = head / (h.heads / h.kv_heads);
    std::vector<double> p(token + 1), out(dim);
    for (unsigned s = 0; s <= token; ++s) {
      for (unsigned d = 0; d < dim; ++d) p[s] += q[d] * bf16_to_float(pool[place(s, kv_head, 0) + d]) / 16;
    }
    const double top = *std::max_element(p.begin(), p.end());
    double total = 0;
    for (double& v : p) total += v = std::exp(v - top);
    for (unsigned d = 0; d < dim; ++d) {
      for (unsigned s = 0; s <= token; ++s) out[d] += p[s] / total * bf16_to_float(pool[place(s, kv_head, 1) + d]);
      out[d] /= 1 + std::exp(-double{row[dim + d]});
    }
    return out;
  }

  // The pool as it is before the tokens from `first` on.
  std::vector<uint16_t> pool_before(unsigned first) const {
    std::vector<uint16_t> before = pool;
    for (unsigned t = first; t < n; ++t) {
      for (unsigned g = 0; g < h.kv_heads; ++g) {
        for (const unsigned v : {0u, 1u}) std::fill_n(before.begin() + static_cast<long>(place(t, g, v)), dim, 0x7fc0);
      }
    }
    return before;
  }

  kernels::AttentionArgs args(unsigned tokens, unsigned splits) const {
    return {tokens, h.heads, h.kv_heads, stride, kv_layers, kv_layer, rotary, splits, 1e-6f};
  }
  std::vector<float> rows(unsigned first) const {
    return {projections.begin() + long(size_t{first} * stride), projections.end()};
  }

  static constexpr unsigned dim = kernels::head_dim, block_tokens = kernels::kv_block_tokens, rotary = 64;
  static constexpr unsigned kv_layers = 2, kv_layer = 1;
  Heads h;
  unsigned n, stride;
  std::vector<float> projections, q_norm, k_norm;  // bf16 values
  std::vector<uint32_t> blocks;
  std::vector<uint16_t> pool;
};

}  // namespace lily::test
