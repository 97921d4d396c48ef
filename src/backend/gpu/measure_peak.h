// What a GPU can do at best, measured.
#pragma once

#include "backend/backend.h"
#include "backend/gpu/device.h"

namespace lily::gpu {

Result<Peak> measure_peak(Device& device);

}  // namespace lily::gpu
