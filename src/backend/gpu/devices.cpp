#include "backend/gpu/devices.h"

#include "backend/gpu/cuda/cuda_device.h"
#include "backend/gpu/emulator/emulator.h"

namespace lily::gpu {

std::vector<std::string> device_names() {
#ifdef LILY_HAS_CUDA
  return {"emulator", "cuda"};
#else
  return {"emulator"};
#endif
}

Result<std::unique_ptr<Device>> open_device(const std::string& name, bool strict) {
  if (name == "emulator") return make_emulator({.strict = strict});
#ifdef LILY_HAS_CUDA
  if (name == "cuda") return cuda::open();
#endif
  std::string names;
  for (const std::string& known : device_names()) names += (names.empty() ? "" : " or ") + known;
  return Error{.where = "device", .what = "unknown to this build", .expected = names, .got = name};
}

}  // namespace lily::gpu
