// Which model a command runs, and where Lily keeps its own files.
#pragma once

#include <string>

#include "base/result.h"

namespace lily::cli {

// $XDG_DATA_HOME/lily, else ~/.local/share/lily (on macOS too). It may not exist yet.
std::string data_directory();

// Holds the path of the last pulled model in its first line; `lily pull` writes it.
std::string last_model_file();

// The first of: `given` (-m), $LILY_MODEL, the last pulled model, the bundled one.
Result<std::string> find_model(const std::string& given);

}  // namespace lily::cli
