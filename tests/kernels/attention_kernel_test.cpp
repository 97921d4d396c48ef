// Attention kernels on every device against plain loops in double over the same bf16 keys and values.
//
// attend_step is float32 but for keys and values (1e-5 of sums and exponentials; a key rounded the other way to bf16 is 2^-9
// of one of many). attend_chunk rounds queries, softmax weights and results to bf16: 2^-9 each.
#include <gtest/gtest.h>

#include <cmath>

#include "support/attention_sequence.h"
#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using test::Heads;
using test::Sequence;
constexpr unsigned dim = Sequence::dim, block_tokens = Sequence::block_tokens, rotary = Sequence::rotary;

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
