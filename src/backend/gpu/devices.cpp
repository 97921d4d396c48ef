#include "backend/gpu/devices.h"

#include "backend/gpu/emulator/emulator.h"

namespace lily::gpu {

std::vector<std::string> device_names() { return {"emulator"}; }

Result<std::unique_ptr<Device>> open_device(const std::string& name) {
  if (name == "emulator") return make_emulator();
  return Error{.where = "device", .what = "unknown", .expected = "emulator", .got = name};
}

}  // namespace lily::gpu
