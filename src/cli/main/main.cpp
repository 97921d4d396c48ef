#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Lily: a local inference engine for Qwen3.6-35B-A3B"};
  app.require_subcommand(1);
  app.set_version_flag("--version", LILY_VERSION);
  std::vector<lily::cli::Command> commands = lily::cli::all_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const auto& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return 2;
}
