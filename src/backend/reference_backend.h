// The scalar reference behind the seam, so that every command can run on it.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace lily {

Result<std::unique_ptr<Backend>> load_reference(std::shared_ptr<const Checkpoint> checkpoint,
                                                const BackendOptions& options);

}  // namespace lily
