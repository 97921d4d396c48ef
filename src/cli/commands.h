// The subcommands: one file each. A command adds its options to the program and gives back what runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "base/result.h"

namespace lily::cli {

struct Command {
  CLI::App* app;             // as parsed
  std::function<int()> run;  // exit code: 0, 1 (the work failed), 2 (the user's input was wrong), 130 (interrupted)
};

Command bench_command(CLI::App& app);
Command chat_command(CLI::App& app);
Command eval_command(CLI::App& app);
Command generate_command(CLI::App& app);
Command inspect_command(CLI::App& app);
Command pull_command(CLI::App& app);
Command quantize_command(CLI::App& app);
Command serve_command(CLI::App& app);
Command synth_command(CLI::App& app);
Command tokenize_command(CLI::App& app);

// Every command, in the order of `lily --help`. A new one is declared here and listed in commands.cpp.
std::vector<Command> all_commands(CLI::App& app);

// Prints "lily: <error>" on stderr and gives its exit code.
int report(const Error& error);

}  // namespace lily::cli
