// Attention kernels on every device against plain loops in double over the same bf16 keys and values.
//
// attend_step is float32 but for keys and values (1e-5 of sums and exponentials; a key rounded the other way to bf16 is 2^-9
// of one of many). attend_chunk rounds queries, softmax weights and results to bf16: 2^-9 each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using kernels::AttentionArgs;
constexpr unsigned dim = kernels::head_dim, block_tokens = kernels::kv_block_tokens, rotary = 64;

struct Heads {
  unsigned heads, kv_heads;
};

// A sequence of tokens with projections, and what the kernels are to make of them.
struct Sequence {
  Sequence(Heads with, unsigned tokens, unsigned seed)
      : h(with),
        n(tokens),
        stride((2 * h.heads + 2 * h.kv_heads) * dim),
        projections(test::normal_numbers(size_t{n} * stride, seed)),
        q_norm(test::normal_numbers(dim, seed + 1)),
        k_norm(test::normal_numbers(dim, seed + 2)),
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

  AttentionArgs args(unsigned tokens, unsigned splits) const {
    return {tokens, h.heads, h.kv_heads, stride, kv_layers, kv_layer, rotary, splits, 1e-6f};
  }
  std::vector<float> rows(unsigned first) const {
    return {projections.begin() + long(size_t{first} * stride), projections.end()};
  }

  static constexpr unsigned kv_layers = 2, kv_layer = 1;
  Heads h;
  unsigned n, stride;
  std::vector<float> projections, q_norm, k_norm;  // bf16 values
  std::vector<uint32_t> blocks;
  std::vector<uint16_t> pool;
};

std::vector<float> rope_table() {
  std::vector<float> table;
  for (const double unit : {1.0, double{kernels::rope_low}}) {
    for (unsigned p = 0; p < kernels::rope_low; ++p) {
      for (unsigned i = 0; i < rotary / 2; ++i) {
        const double angle = p * unit * std::pow(1e7, -2.0 * i / rotary);
        table.push_back(static_cast<float>(std::cos(angle)));
        table.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  return table;
}

class AttentionKernelTest : public test::DeviceTest {
 protected:
  const std::vector<float> rope_ = rope_table();

  // attend_step of the last token of the sequence, merged where it was split.
  std::vector<float> step(const Sequence& s, unsigned splits) {
    const unsigned position = s.n - 1, heads = s.h.heads;
    test::KernelRun run = kernel("attend_step");
    run.in(s.rows(position)).in(s.q_norm).in(s.k_norm).in(rope_).in(std::vector<uint32_t>{position, 0, 0, 0});
    run.in(s.blocks)
        .inout(s.pool_before(position))
        .out<float>(heads * dim)
        .out<float>(size_t{heads} * splits * (dim + 2));
    run.args(s.args(1, splits)).run(splits, s.h.kv_heads);
    expect_pool(run.get<uint16_t>(6), s);
    if (splits == 1) return run.floats(7);
    test::KernelRun merge = kernel("attend_merge");
    merge.in(s.rows(position)).in(run.floats(8)).out<float>(heads * dim).args(s.args(1, splits)).run(heads, 4);
    return merge.floats(2);
  }

  // A value that lies between two bf16 may be rounded to either.
  void expect_pool(const std::vector<uint16_t>& got, const Sequence& s) {
    for (size_t i = 0; i < got.size(); ++i) {
      if (s.pool[i] == got[i]) continue;
      ASSERT_NEAR(bf16_to_float(got[i]), bf16_to_float(s.pool[i]), std::abs(bf16_to_float(s.pool[i])) / 120)
          << "element " << i;
    }
  }
};

TEST_P(AttentionKernelTest, Step) {
  struct Case {
    Heads heads;
    unsigned context, splits;
  };
  for (const Case& c :
       {Case{{8, 1}, 1, 1}, Case{{8, 1}, 2, 4}, Case{{16, 2}, 32, 1}, Case{{16, 2}, 33, 3}, Case{{4, 4}, 256, 1},
        Case{{16, 2}, 257, 8}, Case{{12, 1}, 300, 3}, Case{{16, 2}, 700, 8}, Case{{8, 1}, 700, 1}}) {
    const Sequence s(c.heads, c.context, c.context);
    const std::vector<float> got = step(s, c.splits);
    std::vector<float> want;
    for (unsigned head = 0; head < c.heads.heads; ++head) {
      for (const double v : s.attend(c.context - 1, head)) want.push_back(static_cast<float>(v));
    }
    const test::Difference d = test::difference(got, want);
    EXPECT_TRUE(d.finite && d.relative < 5e-4)
        << "context " << c.context << ", splits " << c.splits << ": " << d.text();
  }
}

TEST_P(AttentionKernelTest, Chunk) {
  struct Case {
    Heads heads;
    unsigned position, n;
  };
  for (const Case& c : {Case{{8, 1}, 0, 1}, Case{{16, 2}, 0, 17}, Case{{4, 4}, 31, 3}, Case{{8, 1}, 255, 5},
                        Case{{12, 1}, 100, 9}, Case{{16, 2}, 300, 22}}) {
    const Sequence s(c.heads, c.position + c.n, c.position + c.n);
    test::KernelRun prepare = kernel("attention_prepare");
    const std::vector<uint16_t> projections = test::as_bf16(s.rows(c.position));
    const std::vector<uint32_t> at = {c.position, 0, 0, 0};
    prepare.in(projections).in(s.q_norm).in(s.k_norm).in(rope_).in(at).in(s.blocks).inout(s.pool_before(c.position));
    prepare.out<uint16_t>(size_t{c.n} * c.heads.heads * dim).args(s.args(c.n, 1));
    prepare.run((c.n * (c.heads.heads + c.heads.kv_heads) + 7) / 8);
    expect_pool(prepare.get<uint16_t>(6), s);

    test::KernelRun attend = kernel("attend_chunk");
    attend.in(prepare.get<uint16_t>(7)).in(projections).in(at).in(s.blocks).in(prepare.get<uint16_t>(6));
    attend.out<uint16_t>(size_t{c.n} * c.heads.heads * dim).args(s.args(c.n, 1)).run((c.n + 3) / 4, c.heads.kv_heads);
    const std::vector<float> got = attend.bf16(5);
    std::vector<float> want;
    for (unsigned t = 0; t < c.n; ++t) {
      for (unsigned head = 0; head < c.heads.heads; ++head) {
        for (const double v : s.attend(c.position + t, head)) want.push_back(static_cast<float>(v));
      }
    }
    const test::Difference d = test::difference(got, want);
    EXPECT_TRUE(d.finite && d.relative < 6e-3) << "position " << c.position << ", n " << c.n << ": " << d.text();
  }
}

TEST_P(AttentionKernelTest, FarPositionsTurnAsTheNearOnes) {
  // The angle of a position is put together from two tables.
  const Sequence s({4, 4}, 1, 5);
  for (const unsigned position : {1023u, 1024u, 200000u}) {
    std::vector<uint32_t> blocks(position / block_tokens + 1, 0);
    test::KernelRun prepare = kernel("attention_prepare");
    prepare.in(test::as_bf16(s.projections))
        .in(s.q_norm)
        .in(s.k_norm)
        .in(rope_)
        .in(std::vector<uint32_t>{position, 0, 0, 0});
    prepare.in(blocks).inout(s.pool).out<uint16_t>(4 * dim).args(s.args(1, 1)).run(1);
    std::vector<float> want;
    for (unsigned head = 0; head < 4; ++head) {
      for (const double v : s.turned(&s.projections[2 * head * dim], s.q_norm, position))
        want.push_back(static_cast<float>(v / 16));
    }
    const test::Difference d = test::difference(prepare.bf16(7), want);
    EXPECT_TRUE(d.finite && d.relative < 2.5e-3) << position << ": " << d.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
