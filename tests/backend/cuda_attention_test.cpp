// CUDA's own attention of a chunk, on the host: which lane holds which element, edges, and copies. On a GPU the tests of the
// portable kernel run it.
#include <gtest/gtest.h>

#include "kernels/args.h"
#include "support/attention_sequence.h"
#include "support/compare.h"
#include "support/kernel_run.h"
// The words are macros, so they come after all other headers, and the kernels after them.
#include "support/cuda_on_host.h"
// then
#include "kernels/activations.h"
#include "kernels/attention_place.h"
// then
#include "backend/gpu/cuda/kernels/flash.h"

namespace lily {
namespace {

using kernels::bf16;
using kernels::uint3;
using test::Sequence;
constexpr unsigned dim = Sequence::dim;

const bf16* halves(const std::vector<uint16_t>& bits) { return reinterpret_cast<const bf16*>(bits.data()); }

// Tokens from `position` on of a sequence. Queries, weights and results are rounded to bf16: 2^-9 each.
template <unsigned M>
void expect_chunk(test::Heads heads, unsigned position, unsigned n, bool late) {
  const Sequence s(heads, position + n, position + n);
  std::vector<uint16_t> q, y(size_t{n} * heads.heads * dim, 0xffff);
  std::vector<float> got, want;
  for (unsigned t = position; t < s.n; ++t) {
    for (unsigned head = 0; head < heads.heads; ++head) {
      const float* row = &s.projections[size_t{t} * s.stride + size_t{2} * head * dim];
      for (const double v : s.turned(row, s.q_norm, t)) q.push_back(float_to_bf16(static_cast<float>(v / 16)));
      for (const double v : s.attend(t, head)) want.push_back(static_cast<float>(v));
    }
  }
  const std::vector<uint16_t> projections = test::as_bf16(s.rows(position));
  const kernels::SequenceStep step = {position, 0};
  const kernels::AttentionArgs args = s.args(n, 1);
  const unsigned tokens = M / (heads.heads / heads.kv_heads);
  test::run_on_host(kernels::flash_threads<M>, heads.kv_heads, (n + tokens - 1) / tokens, late, [&] {
    THREAD_IDS
    kernels::flash_block<M>(halves(q), halves(projections), &step, s.blocks.data(), halves(s.pool),
                            reinterpret_cast<bf16*>(y.data()), args, test::dynamic_memory, thread_index, group);
  });
  for (const uint16_t bits : y) got.push_back(bf16_to_float(bits));
  const test::Difference d = test::difference(got, want);
  EXPECT_TRUE(d.finite && d.relative < 6e-3) << "position " << position << ", n " << n << ": " << d.text();
}

TEST(CudaAttention, Chunk) {
  for (const bool late : {false, true}) {
    expect_chunk<128>({8, 1}, 0, 1, late);
    expect_chunk<128>({16, 2}, 31, 17, late);
    expect_chunk<64>({12, 1}, 255, 3, late);
    expect_chunk<128>({8, 1}, 300, 20, late);
  }
  expect_chunk<64>({2, 2}, 0, 130, false);
  expect_chunk<128>({16, 1}, 60, 12, true);
}

}  // namespace
}  // namespace lily
