// The tags of a tool call in a reply's text, and where a parameter's value ends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_schema.h"

namespace lily {

struct Tag {
  // partial: the text ends before it is clear. The names of functions and parameters belong to the opening tags.
  enum class Kind {
    none,
    partial,
    open_call,
    close_call,
    open_function,
    close_function,
    open_parameter,
    close_parameter
  };
  Kind kind = Kind::none;
  size_t size = 0;
  std::string_view name;

  bool opens() const { return kind == Kind::open_call || kind == Kind::open_function || kind == Kind::open_parameter; }
};

// What stands at `at`, which may be the end. final: no more text comes, so nothing is partial.
Tag tag_at(std::string_view text, size_t at, bool final);

// The first position from `at` on that holds no white space.
size_t skip_space(std::string_view text, size_t at);

// more: the text ends before it is clear.
enum class Decision { no, yes, more };

// Whether <tool_call> stands at `at` and a function or a JSON object follows.
Decision opens_call(std::string_view text, size_t at, bool final);

// What the end of a value depends on, beside the text.
struct ValueContext {
  const ToolSchemas* schemas;
  std::string_view function;
  const std::vector<std::string>* given;  // the parameters so far, the one of the value included
  bool block;                             // the value begins on a line of its own, so its closing tag should, too
  bool line_start;                        // the '<' begins a line
  bool quotes;                            // opening tags are part of the value; their closing ones may be next
  bool patient;  // wait for the end of the reply where only that tells; else take the tags for what they look like
};

// Whether the value ends at the '<' that `text` begins with. A closing tag counts where the rest of a call follows, and
// what follows is no further closing tag of the same value: so a value may hold all of these tags.
Decision value_ends(std::string_view text, bool final, const ValueContext& context);

}  // namespace lily
