#include "text/tool_call_parser.h"

#include <algorithm>
#include <utility>

#include "text/call_json.h"
#include "text/json_escape.h"
#include "text/json_scanner.h"

namespace lily {
namespace {

using Kind = Tag::Kind;

constexpr size_t long_wait = 1024;  // bytes: more than any tag has
constexpr std::string_view null_text = "null";

}  // namespace

void ToolCallParser::push(std::string_view text, std::vector<ReplyEvent>& events) {
  // Only a mark can end a long wait, so it is not looked through again for every token.
  const bool waits = buffer_.size() > long_wait && text.find_first_of("<>}]") == text.npos;
  buffer_ += text;
  if (waits) return;
  events_ = &events;
  while (step()) {
  }
}

void ToolCallParser::finish(std::vector<ReplyEvent>& events) {
  events_ = &events;
  final_ = true;
  while (step()) {
  }
}

bool ToolCallParser::step() {
  switch (state_) {
    case State::text: return step_text();
    case State::function: return step_function();
    case State::value_begin: return step_value_begin();
    case State::value: return step_value();
    case State::after_call: return step_after_call();
  }
  return false;
}

bool ToolCallParser::step_text() {
  if (buffer_.empty()) return false;
  if (const size_t plain = std::min(buffer_.find('<'), buffer_.size()); plain > 0) return content(plain), true;
  const Tag tag = tag_at(buffer_, 0, final_);
  if (tag.kind == Kind::partial) return false;
  if (tag.kind == Kind::open_call) return step_wrapper();
  if (tag.kind == Kind::open_function) return step_bare_function(tag);
  return content(1), true;
}

bool ToolCallParser::step_wrapper() {
  const Decision call = opens_call(buffer_, 0, final_);
  if (call == Decision::more) return false;
  const size_t wrapper = tag_at(buffer_, 0, final_).size;
  if (call == Decision::no) return content(wrapper), true;
  const size_t begin = skip_space(buffer_, wrapper);
  if (buffer_[begin] == '{') return wrapped_json(begin);
  const Tag tag = tag_at(buffer_, begin, final_);
  Decision is_call = schemas_.declares(tag.name) ? Decision::yes : Decision::no;
  if (is_call == Decision::no && !code_.in_fence()) is_call = continues_function(begin + tag.size);
  if (is_call == Decision::more) return false;
  if (is_call == Decision::no) return content(begin + tag.size), true;
  const std::string name(tag.name);
  buffer_.erase(0, begin + tag.size);
  begin_call(name, true);
  return true;
}

bool ToolCallParser::step_bare_function(const Tag& tag) {
  if (!schemas_.declares(tag.name) || code_.in_code()) return content(1), true;
  const Decision is_call = continues_function(tag.size);
  if (is_call == Decision::more) return false;
  if (is_call == Decision::no) return content(1), true;
  const std::string name(tag.name);
  buffer_.erase(0, tag.size);
  begin_call(name, false);
  return true;
}

// Whether a parameter or the end of the function follows.
Decision ToolCallParser::continues_function(size_t at) const {
  at = skip_space(buffer_, at);
  if (at == buffer_.size()) return final_ ? Decision::no : Decision::more;
  const Kind kind = tag_at(buffer_, at, final_).kind;
  if (kind == Kind::partial) return Decision::more;
  const bool fits = kind == Kind::open_parameter || kind == Kind::close_function || kind == Kind::close_call;
  return fits ? Decision::yes : Decision::no;
}

// The object of <tool_call>{...}.
bool ToolCallParser::wrapped_json(size_t begin) {
  const ObjectExtent object = object_at(std::string_view(buffer_).substr(begin), final_);
  if (object.found == Decision::more) return false;
  const auto call = object.found == Decision::yes ? json_call(object.json) : std::nullopt;
  if (!call || (code_.in_fence() && !schemas_.declares(call->name))) return content(begin), true;
  buffer_.erase(0, begin + object.size);
  begin_call(call->name, true);
  arguments(call->arguments);
  add(ReplyEvent::Kind::call_end, "", calls_ - 1);
  state_ = State::after_call;
  return true;
}

// The reply ends within a tag of a call.
bool ToolCallParser::is_cut_tag(size_t at) const { return final_ && tag_at(buffer_, at, false).kind == Kind::partial; }

bool ToolCallParser::step_function() {
  const size_t begin = skip_space(buffer_, 0);
  if (begin == buffer_.size()) {
    if (final_) end_call(false);
    return false;
  }
  if (is_cut_tag(begin)) return buffer_.clear(), true;
  const Tag tag = tag_at(buffer_, begin, final_);
  switch (tag.kind) {
    case Kind::partial: return false;
    case Kind::open_parameter: {
      const std::string name(tag.name);
      buffer_.erase(0, begin + tag.size);
      begin_value(name);
      return true;
    }
    case Kind::close_parameter: return buffer_.erase(0, begin + tag.size), true;
    case Kind::close_function:
    case Kind::close_call: return end_call(true), true;
    case Kind::open_function: return end_call(false), true;
    case Kind::open_call: {
      const Decision call = opens_call(buffer_, begin, final_);
      if (call == Decision::more) return false;
      if (call == Decision::yes) return end_call(false), true;
      break;
    }
    case Kind::none:
      if (buffer_[begin] == '{' && !any_argument_ && stray_.empty()) return function_json();
      break;
  }
  const size_t end = std::min(buffer_.find('<', begin + 1), buffer_.size());
  return stray_text(buffer_.find_last_not_of(" \t\r\n", end - 1) + 1), true;
}

// <function=f>{"a": 1}</function>
bool ToolCallParser::function_json() {
  const size_t begin = skip_space(buffer_, 0);
  const ObjectExtent object = object_at(std::string_view(buffer_).substr(begin), final_);
  if (object.found == Decision::more) return false;
  if (object.found == Decision::no) return stray_text(begin + 1), true;
  buffer_.erase(0, begin + object.size);
  JsonScanner scanner(object.json);
  scanner.object([&](std::string_view name) {
    std::string_view value;
    key(name);
    if (!scanner.skip(value)) value = null_text;
    arguments(value);
    return true;
  });
  return true;
}

bool ToolCallParser::step_value_begin() {
  if (buffer_.empty() && !final_) return false;
  block_ = buffer_.starts_with('\n');
  if (block_) buffer_.erase(0, 1);
  state_ = State::value;
  return true;
}

bool ToolCallParser::step_value() {
  const size_t plain = std::min(buffer_.find('<'), buffer_.size());
  value_text(std::string_view(buffer_).substr(0, plain));
  buffer_.erase(0, plain);
  if (buffer_.empty()) {
    if (final_) end_value();
    return final_;
  }
  const bool line_start = newline_ || (empty_ && block_);
  if (line_start && is_cut_tag(0)) return buffer_.clear(), true;
  const Decision ends =
      value_ends(buffer_, final_, {&schemas_, function_, &given_, block_, line_start, quoted_ > 0, patient_});
  if (ends == Decision::yes) end_value();
  if (ends == Decision::no) {
    const Tag tag = tag_at(buffer_, 0, final_);
    if (tag.opens()) ++quoted_;
    else if (tag.kind != Kind::none && quoted_ > 0) --quoted_;
    value_text("<");
    buffer_.erase(0, 1);
  }
  return ends != Decision::more;
}

// A further function, what closes the call, or something new.
bool ToolCallParser::step_after_call() {
  const size_t begin = skip_space(buffer_, 0);
  if (begin == buffer_.size() && !final_) return false;
  if (wrapped_ && is_cut_tag(begin)) return buffer_.clear(), true;
  const Tag tag = tag_at(buffer_, begin, final_);
  if (tag.kind == Kind::partial) return false;
  if (tag.kind == Kind::close_function || tag.kind == Kind::close_call) {
    buffer_.erase(0, begin + tag.size);
    if (tag.kind == Kind::close_call) wrapped_ = false;
    return true;
  }
  if (tag.kind == Kind::open_function && wrapped_) {
    const std::string name(tag.name);
    buffer_.erase(0, begin + tag.size);
    begin_call(name, true);
    return true;
  }
  if (wrapped_ && begin < buffer_.size() && buffer_[begin] == '{') return wrapped_json(begin);
  state_ = State::text;
  return !buffer_.empty();
}

void ToolCallParser::content(size_t size) {
  const std::string_view text = std::string_view(buffer_).substr(0, size);
  code_.push(text);
  add(ReplyEvent::Kind::content, text, -1);
  buffer_.erase(0, size);
  state_ = State::text;
}

void ToolCallParser::stray_text(size_t size) {
  stray_.append(buffer_, 0, size);
  buffer_.erase(0, size);
}

void ToolCallParser::begin_call(std::string_view name, bool wrapped) {
  function_ = name;
  given_.clear();
  wrapped_ = wrapped;
  any_argument_ = false;
  all_declared_ &= schemas_.declares(name);
  add(ReplyEvent::Kind::call_begin, name, calls_++);
  state_ = State::function;
}

void ToolCallParser::end_call(bool closed) {
  all_closed_ &= closed;
  arguments(any_argument_ ? "}" : "{}");
  add(ReplyEvent::Kind::call_end, "", calls_ - 1);
  if (!stray_.empty()) add(ReplyEvent::Kind::content, std::exchange(stray_, {}), -1);
  state_ = State::after_call;
}

void ToolCallParser::key(std::string_view name) {
  arguments((any_argument_ ? "," : "{") + json_quoted(name) + ":");
  any_argument_ = true;
}

void ToolCallParser::begin_value(std::string_view name) {
  key(name);
  given_.emplace_back(name);
  type_ = schemas_.type_of(function_, name);
  value_.clear();
  empty_ = true, open_string_ = false, newline_ = false, quoted_ = 0;
  state_ = State::value_begin;
}

// A string is given out as it comes, but for the few bytes that may be a bare null, and those that the enum decides on.
void ToolCallParser::value_text(std::string_view text) {
  if (text.empty()) return;
  empty_ = false;
  if (std::exchange(newline_, text.ends_with('\n'))) value_ += '\n';
  if (newline_) text.remove_suffix(1);
  value_ += text;
  const bool may_be_null = !open_string_ && type_.null && null_text.starts_with(value_);
  if (type_.string && type_.choices.empty() && !may_be_null) open_string();
}

void ToolCallParser::open_string() {
  std::string json = std::exchange(open_string_, true) ? "" : "\"";
  append_json_escaped(json, std::exchange(value_, {}));
  if (!json.empty()) arguments(json);
}

void ToolCallParser::end_value() {
  arguments(open_string_ ? "\"" : argument_json(value_, type_));
  state_ = State::function;
}

void ToolCallParser::arguments(std::string_view json) { add(ReplyEvent::Kind::call_arguments, json, calls_ - 1); }

void ToolCallParser::add(ReplyEvent::Kind kind, std::string_view text, int call) {
  if (text.empty() && kind != ReplyEvent::Kind::call_end) return;
  const bool joins = (kind == ReplyEvent::Kind::content || kind == ReplyEvent::Kind::call_arguments) &&
                     !events_->empty() && events_->back().kind == kind && events_->back().call == call;
  if (joins) events_->back().text += text;
  else events_->push_back({kind, std::string(text), call});
}

}  // namespace lily
