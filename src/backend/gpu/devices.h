// The devices that this build has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/gpu/device.h"

namespace lily::gpu {

// "emulator", and "cuda" or "metal" where the program was built with them.
std::vector<std::string> device_names();

// An error where the machine has no such device. `strict`: the emulator looks at each dispatch as closely as it can.
Result<std::unique_ptr<Device>> open_device(const std::string& name, bool strict = true);

}  // namespace lily::gpu
