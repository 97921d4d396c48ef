// Which model a command runs.
#pragma once

#include <string>

#include "base/result.h"

namespace lily::cli {

// The first of: `given` (-m), $LILY_MODEL, the last pulled model, the bundled one.
Result<std::string> find_model(const std::string& given);

}  // namespace lily::cli
