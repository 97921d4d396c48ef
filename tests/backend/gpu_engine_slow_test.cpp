// The GPU engine on the emulator with the oracles that take it long.
#include "backend/gpu_engine_cases.h"

namespace lily {
namespace {

std::vector<Case> cases() { return {{"emulator", "b"}, {"emulator", "g"}}; }

INSTANTIATE_TEST_SUITE_P(All, GpuEngineTest, testing::ValuesIn(cases()), [](const auto& tested) {
  return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
});

}  // namespace
}  // namespace lily
