#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace {

// What was printed must have arrived: a full disk behind a pipe or `>` is a failure, not success.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  const int failed = lily::cli::report({.where = "standard output", .what = "cannot write", .exit_code = 1});
  return code == 0 ? failed : code;
}

// The library gives errors as values; what still throws (out of memory, no more threads) ends in one line, too.
int run(const lily::cli::Command& command) {
  try {
    return finish_output(command.run());
  } catch (const std::exception& error) {
    return lily::cli::report({.what = error.what(), .exit_code = 1});
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Lily: a local inference engine for Qwen3.6-35B-A3B"};
  app.require_subcommand(1);
  app.set_version_flag("--version", LILY_VERSION);
  std::vector<lily::cli::Command> commands = lily::cli::all_commands(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return lily::cli::report({.what = error.what()});
  }
  for (const auto& command : commands) {
    if (command.app->parsed()) return run(command);
  }
  return 2;
}
