#include "text/tool_markup.h"

#include <algorithm>

namespace lily {
namespace {

using Kind = Tag::Kind;

constexpr size_t max_name = 256;

struct TagText {
  std::string_view text;
  Kind kind;
};

constexpr TagText tags[] = {{"<tool_call>", Kind::open_call},      {"</tool_call>", Kind::close_call},
                            {"<function=", Kind::open_function},   {"</function>", Kind::close_function},
                            {"<parameter=", Kind::open_parameter}, {"</parameter>", Kind::close_parameter}};

// Functions are called by words; parameters may hold spaces.
bool may_be_in_name(char c, Kind kind) {
  if (c == '<' || c == '\n' || c == '\r') return false;
  return kind == Kind::open_parameter || std::string_view("{}\"'` \t").find(c) == std::string_view::npos;
}

Tag named_tag(std::string_view rest, size_t begin, Kind kind, bool final) {
  for (size_t at = begin; at < rest.size() && at - begin <= max_name; ++at) {
    if (rest[at] == '>') return at > begin ? Tag{kind, at + 1, rest.substr(begin, at - begin)} : Tag{};
    if (!may_be_in_name(rest[at], kind)) return {};
  }
  return {rest.size() - begin <= max_name && !final ? Kind::partial : Kind::none, 0, {}};
}

// The closing tags from `at` on, inner before outer, with white space between.
struct Closers {
  Kind first = Kind::none, last = Kind::none;
  size_t last_end;  // behind the last one
  size_t next;      // behind the white space after it
};

Closers closers_at(std::string_view text, bool final) {
  Closers closers{Kind::none, Kind::none, 0, 0};
  constexpr Kind order[] = {Kind::close_parameter, Kind::close_function, Kind::close_call};
  for (const Kind kind : order) {
    const Tag tag = tag_at(text, closers.next, final);
    if (tag.kind != kind) continue;
    if (closers.first == Kind::none) closers.first = kind;
    closers.last = kind;
    closers.last_end = closers.next + tag.size;
    closers.next = skip_space(text, closers.last_end);
  }
  return closers;
}

// Looks at the tags from `at` on for a closing tag of a parameter that none of them opens: it is the one of the value.
// Stops early at another call if `until_call`.
Decision finds_orphan(std::string_view text, size_t at, bool final, bool until_call, const ValueContext& context) {
  bool open = false;
  for (at = text.find('<', at); at != text.npos; at = text.find('<', at + 1)) {
    const Tag tag = tag_at(text, at, final);
    if (tag.kind == Kind::close_parameter) {
      if (!open) return Decision::yes;
      open = false;
    } else if (tag.kind == Kind::open_parameter) {
      open = true;
    } else if (until_call && tag.kind == Kind::open_call) {
      const Decision call = opens_call(text, at, final);
      if (call != Decision::no) return call == Decision::yes ? Decision::no : Decision::more;
    } else if (until_call && tag.kind == Kind::open_function && context.schemas->declares(tag.name)) {
      return Decision::no;
    }
  }
  return final ? Decision::no : Decision::more;
}

Decision opposite(Decision decision) {
  return decision == Decision::more ? decision : decision == Decision::yes ? Decision::no : Decision::yes;
}

bool is_expected(std::string_view parameter, const ValueContext& context) {
  return context.schemas->may_have(context.function, parameter) &&
         std::find(context.given->begin(), context.given->end(), parameter) == context.given->end();
}

// Something that is no tag follows the closing tags.
Decision ends_before_text(std::string_view text, const Closers& closers, bool final, const ValueContext& context) {
  if (closers.last == Kind::close_parameter) return Decision::no;
  const std::string_view space = text.substr(closers.last_end, closers.next - closers.last_end);
  if (context.block && !context.line_start && space.find('\n') == space.npos) return Decision::no;
  if (!context.patient) return Decision::yes;
  return opposite(finds_orphan(text, closers.next, final, true, context));
}

Decision ends_at_closers(std::string_view text, bool final, const ValueContext& context) {
  const Closers closers = closers_at(text, final);
  if (closers.next == text.size()) return final ? Decision::yes : Decision::more;
  if (final && tag_at(text, closers.next, false).kind == Kind::partial) return Decision::yes;
  const Tag next = tag_at(text, closers.next, final);
  const bool own_line = context.line_start || !context.block;
  switch (next.kind) {
    case Kind::partial: return Decision::more;
    case Kind::open_parameter:
      if (closers.last != Kind::close_parameter) return Decision::no;
      return own_line || is_expected(next.name, context) ? Decision::yes : Decision::no;
    case Kind::open_function: return own_line || context.schemas->declares(next.name) ? Decision::yes : Decision::no;
    case Kind::open_call: {
      const Decision call = opens_call(text, closers.next, final);
      return call == Decision::no ? ends_before_text(text, closers, final, context) : call;
    }
    case Kind::close_parameter: return Decision::no;
    case Kind::close_function:
    case Kind::close_call: return closers.last == Kind::close_call ? Decision::yes : Decision::no;
    case Kind::none: break;
  }
  return ends_before_text(text, closers, final, context);
}

// The closing tags are missing, or the value quotes a call.
Decision ends_at_opener(std::string_view text, const Tag& tag, bool final, const ValueContext& context) {
  if (!context.line_start && context.block) return Decision::no;
  if (tag.kind == Kind::open_parameter) return is_expected(tag.name, context) ? Decision::yes : Decision::no;
  const Decision call = tag.kind == Kind::open_call           ? opens_call(text, 0, final)
                        : context.schemas->declares(tag.name) ? Decision::yes
                                                              : Decision::no;
  if (call != Decision::yes || !context.patient) return call;
  return opposite(finds_orphan(text, 0, final, false, context));
}

}  // namespace

Tag tag_at(std::string_view text, size_t at, bool final) {
  const std::string_view rest = text.substr(at);
  for (const TagText& tag : tags) {
    if (rest.starts_with(tag.text)) {
      const bool named = tag.text.back() == '=';
      return named ? named_tag(rest, tag.text.size(), tag.kind, final) : Tag{tag.kind, tag.text.size(), {}};
    }
    if (!final && !rest.empty() && tag.text.starts_with(rest)) return {Kind::partial, 0, {}};
  }
  return {};
}

size_t skip_space(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

Decision opens_call(std::string_view text, size_t at, bool final) {
  const Tag tag = tag_at(text, at, final);
  if (tag.kind == Kind::partial) return Decision::more;
  if (tag.kind != Kind::open_call) return Decision::no;
  const size_t next = skip_space(text, at + tag.size);
  if (next == text.size()) return final ? Decision::no : Decision::more;
  const Tag inner = tag_at(text, next, final);
  if (inner.kind == Kind::partial) return Decision::more;
  return inner.kind == Kind::open_function || text[next] == '{' ? Decision::yes : Decision::no;
}

Decision value_ends(std::string_view text, bool final, const ValueContext& context) {
  const Tag tag = tag_at(text, 0, final);
  if (tag.kind == Kind::none) return Decision::no;
  if (tag.kind == Kind::partial) return Decision::more;
  if (tag.opens()) return ends_at_opener(text, tag, final, context);
  const Decision ends = ends_at_closers(text, final, context);
  if (ends != Decision::yes || !context.quotes || !context.patient) return ends;
  return opposite(finds_orphan(text, tag.size, final, false, context));
}

}  // namespace lily
