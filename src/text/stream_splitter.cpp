#include "text/stream_splitter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/stop_strings.h"
#include "text/tool_call_parser.h"
#include "text/tool_schema.h"
#include "text/utf8_stream.h"

namespace lily {
namespace {

using Kind = ReplyEvent::Kind;

constexpr std::string_view spaces = " \t\r\n";

// Bytes of `text` before the white space that ends it.
size_t size_without_space(std::string_view text) { return text.find_last_not_of(spaces) + 1; }

bool is_blank(std::string_view text) { return size_without_space(text) == 0; }

bool is_prose(const ReplyEvent& event) { return event.kind == Kind::content && !is_blank(event.text); }

// Reasoning with calls in it. One that ends the reply was meant, though the model forgot to close its thought; all others
// are drafts. So what may be the last call is held back until something follows.
class Thought {
 public:
  explicit Thought(const ToolSchemas& schemas) : schemas_(schemas) {}

  // Takes more of it, gives what certainly is reasoning.
  std::string push(std::string_view text) {
    if (schemas_.empty()) return std::string(text);
    held_ += text;
    std::string ready;
    while (advance(ready)) {
    }
    return ready;
  }

  // Its end. Whether it ends with whole calls of declared functions, which then are in calls().
  bool close() {
    if (!draft_) return false;
    feed();
    draft_->finish(events_);
    return is_call() && !events_.empty() && draft_->all_closed() && draft_->all_declared();
  }
  std::string take_held() { return std::exchange(held_, {}); }

  std::vector<ReplyEvent> calls() const {
    std::vector<ReplyEvent> calls;
    std::copy_if(events_.begin(), events_.end(), std::back_inserter(calls),
                 [](const ReplyEvent& event) { return event.kind != Kind::content; });
    return calls;
  }

 private:
  bool is_call() const { return std::none_of(events_.begin(), events_.end(), is_prose); }

  void feed() {
    draft_->push(std::string_view(held_).substr(fed_), events_);
    fed_ = held_.size();
  }

  void give(std::string& ready, size_t size) {
    ready.append(held_, 0, size);
    held_.erase(0, size);
  }

  // False: the rest may be the last call, with the white space before it.
  bool advance(std::string& ready) {
    if (draft_) {
      feed();
      if (is_call()) return false;
      draft_.reset();
      give(ready, begin_ + 1);
      return true;
    }
    const size_t mark = held_.find('<');
    const size_t plain = size_without_space(std::string_view(held_).substr(0, mark));
    give(ready, plain);
    if (mark == held_.npos) return false;
    begin_ = fed_ = mark - plain;
    events_.clear();
    draft_.emplace(schemas_, 0, false);
    return true;
  }

  const ToolSchemas& schemas_;
  std::string held_;  // white space, then what may be calls
  std::optional<ToolCallParser> draft_;
  std::vector<ReplyEvent> events_;  // of the draft
  size_t begin_ = 0, fed_ = 0;      // of the draft, in held_
};

}  // namespace

// Think markers are recognised by id, before anything is looked for in text: what merely looks like one cannot switch
// channels, and holding back cannot cut one in two. The first </think> ends the reasoning for good, later ones are
// ordinary text, as a file in the making may hold them; a <think> that leads the reply opens the reasoning.
// Stop strings apply to content only: a thought or an argument may well mention one.
struct StreamSplitter::Impl {
  Impl(const Tokenizer& its_tokenizer, SplitterOptions options)
      : tokenizer(its_tokenizer),
        open(its_tokenizer.added_token("<think>")),
        close(its_tokenizer.added_token("</think>")),
        schemas(options.tools),
        thought(schemas),
        parser(schemas, 0, true),
        stops(std::move(options.stops)) {}

  void reasoning_text(std::string_view text) { give(Kind::reasoning, thought.push(text)); }

  void leave_reasoning() {
    reasoning_text(utf8.finish());
    reasoning = false;
    drop_space = true;
    call_in_thought = thought.close();
    if (!call_in_thought) give(Kind::reasoning, thought.take_held());
  }

  // Something follows the thought, so a call in it was a draft.
  void follow_thought() {
    if (std::exchange(call_in_thought, false)) give(Kind::reasoning, thought.take_held());
  }

  void content_text(std::string_view text, bool end) {
    if (schemas.empty()) return content(text);
    std::vector<ReplyEvent> parsed;
    parser.push(text, parsed);
    if (end) parser.finish(parsed);
    for (ReplyEvent& event : parsed) {
      if (stops.matched()) return;
      if (event.kind == Kind::content) content(event.text);
      else call(std::move(event));
    }
  }

  void content(std::string_view text) {
    if (drop_space) text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
    if (text.empty()) return;
    drop_space = false;
    if (schemas.empty()) return content_for_sure(text);
    const size_t size = size_without_space(text);
    if (size > 0) content_for_sure(std::exchange(space, {}) + std::string(text.substr(0, size)));
    space += text.substr(size);
  }

  void content_for_sure(std::string_view text) {
    follow_thought();
    give(Kind::content, stops.push(text));
  }

  void call(ReplyEvent event) {
    follow_thought();
    if (event.kind == Kind::call_begin) {
      give(Kind::content, stops.finish());
      space.clear();
      ++calls;
    }
    drop_space = event.kind == Kind::call_end;
    events->push_back(std::move(event));
  }

  void finish() {
    if (reasoning) leave_reasoning();
    else content_text(utf8.finish(), true);
    if (!stops.matched() && !space.empty()) content_for_sure(std::exchange(space, {}));
    give(Kind::content, stops.finish());
    if (!std::exchange(call_in_thought, false)) return;
    for (ReplyEvent& event : thought.calls()) call(std::move(event));
  }

  void begin(std::vector<ReplyEvent>& list) {
    events = &list;
    given = list.size();
  }

  void give(Kind kind, std::string text) {
    if (text.empty()) return;
    if (events->size() > given && events->back().kind == kind) events->back().text += text;
    else events->push_back({kind, std::move(text)});
  }

  const Tokenizer& tokenizer;
  const std::optional<int32_t> open, close;  // <think>, </think>
  const ToolSchemas schemas;
  std::vector<ReplyEvent>* events = nullptr;
  size_t given = 0;  // of the events: they are of earlier tokens
  bool reasoning = false, at_start = true;
  bool call_in_thought = false;  // held back at the end of the reasoning
  bool drop_space = false;       // before content
  Utf8Stream utf8;
  Thought thought;
  ToolCallParser parser;
  std::string space;  // that ends the content so far: dropped where a call follows
  StopStrings stops;
  int calls = 0;
};

StreamSplitter::StreamSplitter(const Tokenizer& tokenizer, std::span<const int32_t> prompt, SplitterOptions options)
    : impl_(std::make_unique<Impl>(tokenizer, std::move(options))) {
  const auto marker =
      std::find_if(prompt.rbegin(), prompt.rend(), [&](int32_t id) { return id == impl_->open || id == impl_->close; });
  impl_->reasoning = marker != prompt.rend() && *marker == impl_->open;
}

StreamSplitter::~StreamSplitter() = default;
StreamSplitter::StreamSplitter(StreamSplitter&&) noexcept = default;

void StreamSplitter::push(int32_t id, std::vector<ReplyEvent>& events) {
  if (stopped()) return;
  impl_->begin(events);
  const bool leading = std::exchange(impl_->at_start, false);
  if (leading && id == impl_->open) {
    impl_->reasoning = true;
  } else if (id == impl_->close && impl_->reasoning) {
    impl_->leave_reasoning();
  } else if (!impl_->tokenizer.is_special(id)) {
    const std::string text = impl_->utf8.push(impl_->tokenizer.bytes_of(id));
    if (impl_->reasoning) impl_->reasoning_text(text);
    else impl_->content_text(text, false);
  }
}

void StreamSplitter::finish(std::vector<ReplyEvent>& events) {
  impl_->begin(events);
  impl_->finish();
}

bool StreamSplitter::stopped() const { return impl_->stops.matched(); }

Channel StreamSplitter::channel() const {
  if (impl_->reasoning) return Channel::reasoning;
  return impl_->parser.in_call() ? Channel::tool_call : Channel::content;
}

int StreamSplitter::calls() const { return impl_->calls; }

}  // namespace lily
