#include "cli/commands.h"

#include <cstdio>

namespace lily::cli {

std::vector<Command> all_commands(CLI::App& app) {
  return {pull_command(app)};
}

int report(const Error& error) {
  std::fprintf(stderr, "lily: %s\n", error.message().c_str());
  return error.exit_code;
}

}  // namespace lily::cli
