#include "hub/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/mapped_file.h"
#include "base/paths.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "hub/words.h"

namespace lily::cli {
namespace {

namespace fs = std::filesystem;
using hub::Pulled;
using hub::readable_bytes;

struct Options {
  std::string repository = "mlx-community/Qwen3.6-35B-A3B-4bit";
  hub::PullOptions pull;
  double timeout = 30;    // seconds
  double retry_wait = 1;  // seconds
};

// A bar on a terminal; elsewhere a plain line about every tenth.
class Display {
 public:
  explicit Display(std::string name) : name_(std::move(name)), terminal_(::isatty(STDERR_FILENO) == 1) {}

  void note(const std::string& text) const {
    std::fputs(fmt::format("{}lily: {}\n", terminal_ ? "\r\033[K" : "", text).c_str(), stderr);
  }

  void show(const hub::Progress& progress) {
    const bool checking = progress.phase == hub::Progress::Phase::checking;
    if (!phase_ || *phase_ != progress.phase) start(progress);
    if (terminal_) {
      bar_->set_label(fmt::format("{} {}/{}", checking ? "checking" : name_, progress.files_done, progress.files));
      bar_->update(progress.done);
    } else if (!checking) {
      print_tenth(progress);
    }
  }

  void end() { bar_.reset(); }

 private:
  void start(const hub::Progress& progress) {
    phase_ = progress.phase;
    start_ = std::chrono::steady_clock::now();
    first_ = progress.done;
    next_tenth_ = progress.total > 0 ? progress.done * 10 / progress.total + 1 : 10;
    bar_.reset();
    if (terminal_) bar_ = std::make_unique<ProgressBar>(name_, progress.total, ProgressUnit::bytes);
    if (progress.phase == hub::Progress::Phase::checking) return;
    note(fmt::format("pulling {} files, {}{}", progress.files, readable_bytes(progress.total),
                     first_ > 0 ? ", of which " + readable_bytes(first_) + " are here" : ""));
  }

  void print_tenth(const hub::Progress& progress) {
    if (progress.total == 0 || progress.done * 10 / progress.total < next_tenth_) return;
    next_tenth_ = progress.done * 10 / progress.total + 1;
    const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double rate = static_cast<double>(progress.done - first_) / std::max(elapsed, 1e-3);
    const double left = rate > 0 ? static_cast<double>(progress.total - progress.done) / rate : 0;
    note(fmt::format("{} % ({} of {}, {}/s, {} left)", progress.done * 100 / progress.total,
                     readable_bytes(progress.done), readable_bytes(progress.total),
                     readable_bytes(static_cast<int64_t>(rate)),
                     left < 120 ? fmt::format("{:.0f} s", left) : fmt::format("{:.0f} min", left / 60)));
  }

  const std::string name_;
  const bool terminal_;
  std::unique_ptr<ProgressBar> bar_;
  std::optional<hub::Progress::Phase> phase_;
  std::chrono::steady_clock::time_point start_;
  int64_t first_ = 0;
  int64_t next_tenth_ = 0;
};

Result<hub::Repository> repository_of(const std::string& text) {
  std::error_code failed;
  const bool path = text.starts_with('.') || text.starts_with('/') || text.starts_with('~');
  if (path || fs::exists(fs::path(text) / "config.json", failed)) {
    return Error{.where = text,
                 .what = "is a path on this machine, so there is nothing to pull; `lily chat -m " + text + "` uses it",
                 .expected = "a Hugging Face repository, such as mlx-community/Qwen3.6-35B-A3B-4bit"};
  }
  return hub::parse_repository(text);
}

std::string describe(const Pulled& pulled) {
  const std::string version = "version " + pulled.commit.substr(0, 8);
  switch (pulled.how) {
    case Pulled::How::downloaded: return version + " is here and verified";
    case Pulled::How::up_to_date: return version + " is already here and up to date";
    case Pulled::How::in_cache:
      return version + " is in the Hugging Face cache and is used there; nothing was downloaded";
    case Pulled::How::out_of_date:
      return version + " is published; the older one here stays in use (`lily pull --update` replaces it)";
    case Pulled::How::unconfirmed:
      return "the Hub could not be asked (" + pulled.why + "), but the model is here and usable";
  }
  return "";
}

Result<void> remember(const std::string& directory) {
  std::error_code failed;
  fs::create_directories(data_directory(), failed);  // write_file says what is wrong
  const std::string line = directory + "\n";
  return write_file(last_model_file(), std::as_bytes(std::span(line)));
}

Result<void> run_pull(Options& options) {
  LILY_TRY(options.pull.repository, repository_of(options.repository));
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  };
  options.pull.network.stall_limit = milliseconds(options.timeout);
  options.pull.network.retry_wait = milliseconds(options.retry_wait);
  std::signal(SIGPIPE, SIG_IGN);  // a server may hang up while libcurl writes
  const Interrupt interrupt(Interrupt::Catch::once);
  Display display(options.pull.repository.name);
  const hub::Observer observer{.progress = [&](const hub::Progress& progress) { display.show(progress); },
                               .note = [&](const std::string& text) { display.note(text); }};
  const Result<Pulled> pulled = hub::pull(options.pull, *interrupt.flag(), observer);
  display.end();
  if (!pulled) return pulled.error();
  LILY_CHECK(remember(pulled->directory));
  fmt::print("{}: {}.\n`lily chat` uses {}\n", options.pull.repository.id(), describe(*pulled), pulled->directory);
  return {};
}

}  // namespace

Command pull_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("pull", "Download a model from Hugging Face, for `lily chat` and the others");
  auto options = std::make_shared<Options>();
  command->add_option("repository", options->repository, "ORGANISATION/NAME[@REVISION]")->capture_default_str();
  command->add_option("--dir", options->pull.directory, "Destination (default: in Lily's data directory)");
  command->add_flag("--verify", options->pull.verify, "Check the checksums of files that are already here");
  command->add_flag("--update", options->pull.update, "Replace files here that differ from the published ones");
  command->add_option("--timeout", options->timeout, "Seconds without data before a connection is given up")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  command->add_option("--retries", options->pull.network.retries, "Failures in a row before giving up")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  command->add_option("--retry-wait", options->retry_wait, "Seconds before the first retry; doubled each time")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 600.0));
  return {command, [options] {
            const Result<void> done = run_pull(*options);
            return done ? 0 : report(done.error());
          }};
}

}  // namespace lily::cli
