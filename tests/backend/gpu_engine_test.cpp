// The GPU engine on the oracles that the emulator has done with soon, and on all where there is a GPU.
#include "backend/gpu_engine_cases.h"

namespace lily {
namespace {

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& device : gpu::device_names()) {
    for (const char* oracle : {"a", "b", "f", "g"}) {
      const bool slow = device == "emulator" && std::string(oracle) != "a" && std::string(oracle) != "f";
      if (!slow) all.push_back({device, oracle});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, GpuEngineTest, testing::ValuesIn(cases()), [](const auto& tested) {
  return std::get<0>(tested.param) + "_" + std::get<1>(tested.param);
});

}  // namespace
}  // namespace lily
