// What the host does where a mechanism of the engine is switched off.
#pragma once

#include "backend/gpu/device.h"
#include "backend/gpu/schedule.h"

namespace lily::gpu {

// group_count, group_map and group_scatter on the host: waits for the choices, sends the groups.
Result<void> group_on_host(Device& device, const Schedule::Routed& routed, const kernels::GroupArgs& args);

}  // namespace lily::gpu
