// Backend over this machine's cores.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace lily::cpu {

Result<std::unique_ptr<Backend>> load(std::shared_ptr<const Checkpoint> checkpoint, const BackendOptions& options);

}  // namespace lily::cpu
