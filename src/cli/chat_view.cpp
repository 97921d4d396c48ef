#include "cli/chat_view.h"

#include <unistd.h>

#include <memory>
#include <optional>

#include "base/paths.h"
#include "cli/progress.h"

namespace lily::cli {
namespace {

constexpr const char* white_space = " \t\r\n";

}  // namespace

ViewStyle ViewStyle::of_terminal(bool interactive) {
  const bool thoughts = interactive || ::isatty(STDERR_FILENO) == 1;
  const bool plain = !environment("NO_COLOR").empty() || environment("TERM") == "dumb";
  return {.decorated = interactive, .colour = thoughts && !plain, .thoughts = thoughts};
}

void ChatView::show(const ReplyEvent& event) {
  const Channel channel = event.kind == ReplyEvent::Kind::reasoning ? Channel::reasoning : Channel::content;
  if (channel == Channel::reasoning && !style_.thoughts) return;
  if (channel != channel_) {
    close();
    channel_ = channel;
  }
  std::string text = std::move(space_) + event.text;
  space_.clear();
  if (!open_) text.erase(0, std::min(text.find_first_not_of(white_space), text.size()));
  const size_t end = text.find_last_not_of(white_space) + 1;
  space_ = text.substr(end);
  if (end == 0) return;
  if (!open_) open(channel);
  std::fwrite(text.data(), 1, end, out());
  std::fflush(out());
}

void ChatView::open(Channel channel) {
  open_ = true;
  if (channel == Channel::content) answered_ = true;
  if (channel == Channel::reasoning) std::fputs(style_.colour ? "\033[2m" : "Thinking: ", out());
}

void ChatView::close() {
  if (open_) {
    if (channel_ == Channel::reasoning) std::fputs(style_.colour ? "\033[0m\n" : "\n", out());
    std::fputs("\n", out());
    std::fflush(out());
  }
  open_ = false;
  space_.clear();
}

void ChatView::end_reply(bool complete) {
  close();
  // An answer without text is still a line where a program reads the answers.
  if (complete && !answered_ && !style_.decorated) std::fputs("\n", stdout);
  answered_ = false;
  channel_ = Channel::content;
  std::fflush(stdout);
}

void ChatView::note(const std::string& text) {
  if (!style_.decorated) return;
  std::fputs((style_.colour && !text.empty() ? "\033[2m" + text + "\033[0m\n" : text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string ChatView::prompt(bool continued) const {
  const std::string sign = continued ? "…" : ">";
  // The editor sends codes along with the character behind them, so the last ones stand before the space.
  return style_.colour ? "\1\033[1;32m\1" + sign + "\1\033[0m\1 " : sign + " ";
}

std::function<void(int64_t done, int64_t total)> prefill_bar() {
  const auto bar = std::make_shared<std::optional<ProgressBar>>();
  return [bar](int64_t done, int64_t total) {
    if (!*bar) bar->emplace("reading", total, ProgressUnit::tokens);
    (*bar)->update(done);
    if (done == total) bar->reset();
  };
}

}  // namespace lily::cli
