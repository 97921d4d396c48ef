// The planner's stages and places, by operations of one kernel (rms_norm: reads two buffers, writes the third).
#include "backend/gpu/planner.h"

#include <gtest/gtest.h>

#include "backend/gpu/emulator/emulator.h"
#include "kernels/args.h"

namespace lily::gpu {
namespace {

class PlannerTest : public testing::Test {
 protected:
  void norm(Planner& planner, const Operand& from, const Operand& to) {
    planner.add("rms_norm", {1, 1, 1}, {from, weight_, to}, kernels::NormArgs{64, 1e-6f});
  }
  Operand buffer(size_t bytes) {
    buffers_.push_back(device_->allocate(bytes).value());
    return external({buffers_.back().get(), 0, bytes});
  }

  std::unique_ptr<Device> device_ = make_emulator({.threads = 1});
  std::vector<std::unique_ptr<Buffer>> buffers_;
  Operand weight_ = buffer(256);
};

TEST_F(PlannerTest, IndependentOperationsShareAStage) {
  Planner planner;
  const Operand x = buffer(256), a = planner.temporary(128), b = planner.temporary(128), y = buffer(128);
  norm(planner, x, a);
  norm(planner, a, y.part(0, 64));   // after a
  norm(planner, x, b);               // beside the first
  norm(planner, b, y.part(64, 64));  // beside the second: another part of y
  const Plan plan = planner.finish();
  EXPECT_EQ(plan.kernels(), 4);
  EXPECT_EQ(plan.stages(), 2);
  const auto memory = device_->allocate(plan.temporary_bytes()).value();
  const std::vector<Dispatch> list = plan.dispatches(*memory);
  EXPECT_EQ(plan.intermediate_bytes(), 256u);
  ASSERT_EQ(list.size(), 4u);
  for (const size_t i : {0, 1, 3}) EXPECT_FALSE(list[i].barrier) << i;
  EXPECT_TRUE(list[2].barrier);
}

TEST_F(PlannerTest, WritesWaitForReadersAndWriters) {
  Planner planner;
  const Operand x = buffer(256), y = buffer(256), z = buffer(256);
  norm(planner, x, y);
  norm(planner, z, x);  // must not overtake the read of x
  norm(planner, z, x);  // nor the write
  norm(planner, x, z);  // nor the reads of z
  EXPECT_EQ(planner.finish().stages(), 4);
}

TEST_F(PlannerTest, UnorderedOperandsMakeNoStages) {
  Planner planner;
  const Operand x = buffer(256), pool = unordered(buffer(256).view);
  norm(planner, x, pool);
  norm(planner, x, pool);
  EXPECT_EQ(planner.finish().stages(), 1);
}

TEST_F(PlannerTest, WithoutConcurrencyEachOperationIsAStage) {
  Planner planner({.concurrent = false});
  const Operand x = buffer(256);
  for (int i = 0; i < 3; ++i) norm(planner, x, planner.temporary(128));
  EXPECT_EQ(planner.finish().stages(), 3);
}

TEST_F(PlannerTest, TemporariesThatLiveTogetherDoNotOverlap) {
  Planner planner;
  const Operand x = buffer(4096);
  Operand before = x;
  for (const size_t bytes : {512, 1024, 256, 2048, 128}) {  // a chain: at any time two of them live
    const Operand next = planner.temporary(bytes);
    norm(planner, before, next);
    before = next;
  }
  norm(planner, before, x);
  const Plan plan = planner.finish();
  EXPECT_EQ(plan.temporary_bytes(), 2048u + 256u);  // the largest pair of neighbours
  const auto memory = device_->allocate(plan.temporary_bytes()).value();
  for (const Dispatch& dispatch : plan.dispatches(*memory)) {
    const BufferView &from = dispatch.buffers[0], &to = dispatch.buffers[2];
    if (from.buffer != to.buffer) continue;
    EXPECT_TRUE(from.offset + from.bytes <= to.offset || to.offset + to.bytes <= from.offset);
  }

  Planner apart({.reuse = false});
  before = x;
  for (const size_t bytes : {512, 1024, 256}) {
    const Operand next = apart.temporary(bytes);
    norm(apart, before, next);
    before = next;
  }
  EXPECT_EQ(apart.finish().temporary_bytes(), 512u + 1024u + 256u);
}

}  // namespace
}  // namespace lily::gpu
