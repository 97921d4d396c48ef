// A child process at a pseudo-terminal, or between pipes, driven as a person or a script would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <util.h>
#else
#include <pty.h>
#endif

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>

namespace lily::test {

// Generous: only a failing test waits so long.
constexpr int patience_ms = 10000;

inline int exit_code_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class Terminal {
 public:
  // Runs `main` in a child whose stdin, stdout and stderr are a terminal of 80 x 24.
  explicit Terminal(const std::function<int()>& main) {
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ == 0) ::_exit(main());
  }
  ~Terminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      exit_code_of(pid_);
    }
    ::close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys) const {
    EXPECT_EQ(::write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  // Waits until the screen's output, from where the last wait ended, holds `text`.
  testing::AssertionResult shows(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (true) {
      if (const size_t at = output_.find(text, seen_); at != output_.npos) {
        seen_ = at + text.size();
        return testing::AssertionSuccess();
      }
      if (std::chrono::steady_clock::now() > deadline || !read_some()) {
        return testing::AssertionFailure() << "no \"" << text << "\" in: " << output_.substr(seen_);
      }
    }
  }

  // Waits for the child to end by itself; one that does not is ended, and gives 128 + SIGKILL.
  int exit_code() {
    while (read_some()) {
    }
    pollfd closed{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&closed, 1, 0) == 0) ::kill(pid_, SIGKILL);  // nothing to read, yet still open
    return exit_code_of(std::exchange(pid_, -1));
  }

  const std::string& output() const { return output_; }

 private:
  bool read_some() {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, patience_ms) <= 0) return false;
    char buffer[4096];
    const ssize_t count = ::read(fd_, buffer, sizeof buffer);
    if (count > 0) output_.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }

  int fd_ = -1;
  pid_t pid_ = -1;
  std::string output_;
  size_t seen_ = 0;
};

struct Piped {
  int code = -1;
  std::string out, err;
};

// Runs `main` in a child with `input` on its stdin; both outputs are pipes. They must fit the pipes' buffers.
inline Piped run_piped(const std::function<int()>& main, const std::string& input) {
  int in[2], out[2], err[2];
  if (::pipe(in) != 0 || ::pipe(out) != 0 || ::pipe(err) != 0) return {};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    for (const int fd : {in[0], in[1], out[0], out[1], err[0], err[1]}) ::close(fd);
    const int code = main();
    std::fflush(nullptr);
    ::_exit(code);
  }
  for (const int fd : {in[0], out[1], err[1]}) ::close(fd);
  // A child that does not read its input may be gone by now.
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  const ssize_t written = ::write(in[1], input.data(), input.size());
  EXPECT_TRUE(written == static_cast<ssize_t>(input.size()) || errno == EPIPE);
  ::signal(SIGPIPE, before);
  ::close(in[1]);
  const auto drain = [](int fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t count; (count = ::read(fd, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(count));
    ::close(fd);
    return text;
  };
  Piped result;
  result.out = drain(out[0]);
  result.err = drain(err[0]);
  result.code = exit_code_of(pid);
  return result;
}

// The program itself with these arguments.
inline std::function<int()> program(const std::vector<std::string>& arguments) {
  return [arguments] {
    std::vector<char*> argv;
    std::string name = "lily";
    argv.push_back(name.data());
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(LILY_BINARY, argv.data());
    return 127;
  };
}

}  // namespace lily::test
