// How a chat looks: on a terminal with dim thoughts and notes, elsewhere the answers alone.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "text/stream_splitter.h"

namespace lily::cli {

// What the outputs can show.
struct ViewStyle {
  bool decorated = false;  // a person reads stdout and types: welcome, thoughts, notes
  bool colour = false;     // escape codes for dim text, unless NO_COLOR is set
  bool thoughts = true;    // without decoration they go to stderr, or nowhere

  static ViewStyle of_terminal(bool interactive);
};

class ChatView {
 public:
  explicit ChatView(const ViewStyle& style) : style_(style) {}

  // Streams a reply: white space around thought and answer is not shown, a blank line parts them.
  void show(const ReplyEvent& event);
  void end_reply(bool complete = true);  // not complete: an error ended it

  void note(const std::string& text);  // one dim line; nothing where there is no decoration
  std::string prompt(bool continued) const;

 private:
  void open(Channel channel);
  void close();
  FILE* out() const { return channel_ == Channel::reasoning && !style_.decorated ? stderr : stdout; }

  ViewStyle style_;
  Channel channel_ = Channel::content;
  bool open_ = false;      // some text of channel_ has been shown
  bool answered_ = false;  // some content has been shown
  std::string space_;      // held back until more text follows it
};

// For SyncOptions::progress: a bar for prompts that take a while, gone when they are read.
std::function<void(int64_t done, int64_t total)> prefill_bar();

}  // namespace lily::cli
