// Backend over a GPU device.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/gpu/device.h"
#include "backend/gpu/schedule.h"

namespace lily::gpu {

// `device`: "cuda", "emulator" (gpu/devices.h).
Result<std::unique_ptr<Backend>> load(const std::string& device, std::shared_ptr<const Checkpoint> checkpoint,
                                      const BackendOptions& options);

}  // namespace lily::gpu
