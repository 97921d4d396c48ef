// The GPU engine on the bundled model against float32, on every device of this build. The oracles are in gpu_engine_test.
#include "backend/gpu/devices.h"
#include "support/fidelity.h"

namespace lily {
namespace {

class GpuFidelityTest : public testing::TestWithParam<std::string> {};

TEST_P(GpuFidelityTest, TinyModel) {
  if (const auto there = gpu::open_device(GetParam()); !there) GTEST_SKIP() << there.error().message();
  const auto checkpoint = test::open_bundled_model();
  test::expect_tiny_model_faithful(*Backend::load(GetParam(), checkpoint).value(), checkpoint);
}

INSTANTIATE_TEST_SUITE_P(Devices, GpuFidelityTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
