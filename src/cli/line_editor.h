// One line at a time from a terminal: editing, history, pasted text with line breaks, Ctrl-C.
#pragma once

#include <memory>
#include <string>

#include "cli/interrupt.h"

namespace lily::cli {

enum class Input { line, interrupted, end };

class LineEditor {
 public:
  // Keeps its history in `history_file`, for this user only; a file that cannot be used is no error.
  LineEditor(const std::string& history_file, Interrupt& interrupt);
  ~LineEditor();

  // `line` without its line break. Ctrl-C gives `interrupted` and what had been typed; Ctrl-D on an empty line gives `end`.
  Input read(const std::string& prompt, std::string& line);
  void remember(const std::string& line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lily::cli
