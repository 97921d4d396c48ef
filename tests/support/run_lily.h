// Runs the lily program of this build.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "support/temporary_directory.h"

namespace lily::test {

struct ProgramRun {
  int exit_code;
  std::string out, err;
};

// `arguments` as a shell would take them; paths of TemporaryDirectory need no quotes.
inline ProgramRun run_lily(const std::string& arguments, const std::string& input = "") {
  const TemporaryDirectory streams;
  std::ofstream(streams / "in") << input;
  const auto read = [&](const std::string& name) {
    std::ifstream file(streams / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string redirect = " <" + streams / "in" + " >" + streams / "out" + " 2>" + streams / "err";
  const int status = std::system(("\"" LILY_BINARY "\" " + arguments + redirect).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("out"), read("err")};
}

}  // namespace lily::test
