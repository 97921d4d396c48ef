// A file that a command writes as a whole, or not at all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"

namespace lily::cli {

// Before the work: the output takes the place of nothing that is read, and of no device.
Result<void> check_output(const std::string& path, const Checkpoint& checkpoint,
                          const std::vector<std::string>& inputs);

// `write` fills a new file at the path it is given, which then takes the place of `path`.
Result<void> replace_file(const std::string& path, const std::function<Result<void>(const std::string&)>& write);

}  // namespace lily::cli
