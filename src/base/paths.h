// Where Lily keeps its own files on this machine.
#pragma once

#include <string>

namespace lily {

// The value of an environment variable, empty where it is not set.
std::string environment(const char* name);

// $HOME, else the home of the user database; empty if neither is known.
std::string home_directory();

// $XDG_DATA_HOME/lily, else ~/.local/share/lily (on macOS too). It may not exist yet.
std::string data_directory();

// Holds the path of the last pulled model in its first line.
std::string last_model_file();

}  // namespace lily
