// A conversation at a terminal or through pipes.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/engine.h"
#include "cli/options.h"

namespace lily::cli {

struct ChatSettings {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> prompt;  // answered once; without it, stdin is a conversation
  std::string system;
  bool no_think = false;
};

// The exit code. At a terminal errors are shown and the chat goes on; elsewhere the first one ends it.
Result<int> run_chat(Engine& engine, const ChatSettings& settings);

}  // namespace lily::cli
