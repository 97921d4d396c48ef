#include "cli/commands.h"

#include <cstdio>

namespace lily::cli {

std::vector<Command> all_commands(CLI::App& app) {
  return {
      chat_command(app),    serve_command(app),    pull_command(app),  generate_command(app), tokenize_command(app),
      inspect_command(app), quantize_command(app), synth_command(app), eval_command(app),     bench_command(app),
  };
}

int report(const Error& error) {
  std::fprintf(stderr, "lily: %s\n", error.message().c_str());
  return error.exit_code;
}

}  // namespace lily::cli
