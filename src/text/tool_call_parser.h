// The text of a reply -> content and tool calls, however the model strays from the form that the template shows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/code_marks.h"
#include "text/stream_splitter.h"
#include "text/tool_markup.h"
#include "text/tool_schema.h"

namespace lily {

// A call is <tool_call> with <function=...> or a JSON object in it, or a bare <function=...> of a declared function that is
// no code and is followed by a parameter or its end. In a code fence even <tool_call> needs a declared function. Within a
// call, closing tags may be missing, and line breaks; text that belongs to no parameter comes as content after the call.
// What is no call is content, as it stands.
// The events are the same for every cut of the text, but for how texts and arguments are cut.
class ToolCallParser {
 public:
  // `patient`: see ValueContext. The schemas must outlive the parser. Calls count from `first_call`.
  ToolCallParser(const ToolSchemas& schemas, int first_call, bool patient)
      : schemas_(schemas), calls_(first_call), patient_(patient) {}

  // Takes whole UTF-8 characters.
  void push(std::string_view text, std::vector<ReplyEvent>& events);
  void finish(std::vector<ReplyEvent>& events);

  bool in_call() const { return state_ == State::function || state_ == State::value_begin || state_ == State::value; }
  int calls() const { return calls_; }
  bool all_closed() const { return all_closed_; }      // no call ended without a closing tag of its own
  bool all_declared() const { return all_declared_; }  // nor was one of a function that the request does not declare

 private:
  // after_call: further functions and closing tags of the same <tool_call> may follow.
  enum class State { text, function, value_begin, value, after_call };

  // Each takes something off buffer_; false: it needs more text.
  bool step();
  bool step_text();
  bool step_wrapper();
  bool step_bare_function(const Tag& tag);
  bool step_function();
  bool step_value_begin();
  bool step_value();
  bool step_after_call();
  bool wrapped_json(size_t begin);
  bool function_json();
  Decision continues_function(size_t at) const;
  bool is_cut_tag(size_t at) const;

  void content(size_t size);
  void stray_text(size_t size);
  void begin_call(std::string_view name, bool wrapped);
  void end_call(bool closed);
  void key(std::string_view name);
  void begin_value(std::string_view name);
  void value_text(std::string_view text);
  void open_string();
  void end_value();
  void arguments(std::string_view json);
  void add(ReplyEvent::Kind kind, std::string_view text, int call);

  const ToolSchemas& schemas_;
  int calls_;
  const bool patient_;
  std::vector<ReplyEvent>* events_ = nullptr;
  bool final_ = false;

  State state_ = State::text;
  std::string buffer_;  // begins where nothing is decided
  CodeMarks code_;

  std::string function_;
  std::vector<std::string> given_;  // parameters
  std::string stray_;               // text in a call that belongs to no parameter
  bool wrapped_ = false, any_argument_ = false, all_closed_ = true, all_declared_ = true;

  ParameterType type_;  // of the value
  std::string value_;   // what is not given out of it
  int quoted_ = 0;      // opening tags that are part of it, less their closing ones
  bool block_ = false, empty_ = true, open_string_ = false;
  bool newline_ = false;  // a line break after the text so far: the last one is no part of the value
};

}  // namespace lily
