// Sampled ids -> what a user sees of a reply: reasoning, content and tool calls, as they come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/chat.h"
#include "text/tokenizer.h"

namespace lily {

enum class Channel { reasoning, content, tool_call };

struct ReplyEvent {
  enum class Kind {
    reasoning,       // text: whole UTF-8 characters
    content,         // the same
    call_begin,      // text: the function's name; call: which of the reply's calls, from 0
    call_arguments,  // text: more of the JSON object of the call's arguments; all of a call's together are one valid object
    call_end,        // the JSON object is complete
  };
  Kind kind;
  std::string text;
  int call = -1;

  bool operator==(const ReplyEvent&) const = default;
};

struct SplitterOptions {
  std::vector<OrderedJson> tools;  // declared functions, see ChatOptions; none: tool-call markup is ordinary content
  std::vector<std::string> stops;  // none of them empty; looked for in content only
};

// White space between the reasoning and the content, before a call and after one is dropped; other white space stays. A call
// within reasoning is a draft and stays reasoning, unless it ends the reply, whole and of a declared function.
class StreamSplitter {
 public:
  // The prompt decides where the reply starts: inside reasoning where its last think marker is an opening one.
  StreamSplitter(const Tokenizer& tokenizer, std::span<const int32_t> prompt, SplitterOptions options);
  ~StreamSplitter();
  StreamSplitter(StreamSplitter&&) noexcept;

  // Appends the events of one more token; what may still turn out to be markup or a stop string is held back.
  void push(int32_t id, std::vector<ReplyEvent>& events);
  // The end of the reply: what was held back.
  void finish(std::vector<ReplyEvent>& events);

  bool stopped() const;  // at a stop string
  Channel channel() const;
  int calls() const;  // begun so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lily
