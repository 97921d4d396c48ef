// Runs a program in an environment of its own, beside the test: it can be signalled before it ends.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "support/temporary_directory.h"

namespace lily::test {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

struct Ran {
  int exit_code;  // 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

using Environment = std::map<std::string, std::string>;

// A program that runs until wait().
class Program {
 public:
  Program(const std::vector<std::string>& words, const Environment& environment) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::vector<std::string> settings;
    for (const auto& [name, value] : environment) settings.push_back(name + "=" + value);
    std::vector<char*> envp;
    for (std::string& setting : settings) envp.push_back(setting.data());
    envp.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 1, out().c_str(), O_WRONLY | O_CREAT, 0600);
    ::posix_spawn_file_actions_addopen(&files, 2, err().c_str(), O_WRONLY | O_CREAT, 0600);
    if (::posix_spawnp(&pid_, argv[0], &files, nullptr, argv.data(), envp.data()) != 0) pid_ = -1;
    ::posix_spawn_file_actions_destroy(&files);
  }

  void send_signal(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
  }

  std::string out_so_far() const { return read_text(out()); }

  // At most half a minute: a program that hangs fails its test.
  Ran wait() {
    int status = 0;
    if (pid_ <= 0) return {-1, "", "cannot be started"};
    for (int i = 0; ::waitpid(pid_, &status, WNOHANG) == 0; ++i) {
      if (i == 6000) ::kill(pid_, SIGKILL);
      ::usleep(5'000);
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {code, read_text(out()), read_text(err())};
  }

 private:
  std::string out() const { return streams_ / "out"; }
  std::string err() const { return streams_ / "err"; }

  TemporaryDirectory streams_;
  pid_t pid_ = -1;
};

}  // namespace lily::test
