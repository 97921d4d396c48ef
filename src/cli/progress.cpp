#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace lily::cli {
namespace {

constexpr auto redraw_interval = std::chrono::milliseconds(100);

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string amount(double value, ProgressUnit unit) {
  if (unit == ProgressUnit::tokens) return fmt::format("{:.0f}", value);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} MB", value / 1e6);
  return fmt::format("{:.0f} kB", value / 1e3);
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

ProgressBar::ProgressBar(std::string label, int64_t total, ProgressUnit unit, std::chrono::milliseconds delay)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      delay_(delay),
      start_(Clock::now()),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(int64_t done) {
  if (first_ < 0) first_ = done;
  const auto now = Clock::now();
  if (!terminal_ || now - start_ < delay_ || now - drawn_ < redraw_interval) return;
  draw(done, now);
}

void ProgressBar::draw(int64_t done, Clock::time_point now) {
  drawn_ = now;
  visible_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done - first_) / std::max(elapsed, 1e-3);
  const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
  const char* per_second = unit_ == ProgressUnit::tokens ? " tok/s" : "/s";
  const std::string tail =
      fmt::format(" {}/{}  {}{}  {} left", amount(static_cast<double>(done), unit_),
                  amount(static_cast<double>(total_), unit_), amount(rate, unit_), per_second, duration(left));
  const int width = std::clamp(terminal_width() - static_cast<int>(label_.size() + tail.size()) - 4, 0, 40);
  const double fraction =
      total_ > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total_), 0.0, 1.0) : 0;
  const int filled = static_cast<int>(fraction * width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < filled ? "━" : "─";
  std::fputs(fmt::format("\r\033[K{} {}{}", label_, bar, tail).c_str(), stderr);
}

}  // namespace lily::cli
