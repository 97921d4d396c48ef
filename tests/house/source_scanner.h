// Finds the functions of C++ and Python sources and counts their lines. No parser: enough for code in this style.
#pragma once

#include <algorithm>
#include <cctype>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "house/repository.h"

namespace lily::house {

struct Function {
  std::string header;  // from its first word to the opening brace or colon, on one line
  int first_line = 0;
  int lines = 0;
};

// The same text with comments, string and character literals and preprocessor lines as spaces; line breaks stay.
class CodeOnly {
 public:
  static std::string of(std::string_view source) { return CodeOnly(source).run(); }

 private:
  explicit CodeOnly(std::string_view source) : source_(source), code_(source) {}

  std::string run() {
    while (at_ < source_.size()) {
      if (starts("//")) blank_to(line_end());
      else if (starts("/*")) blank_to(after("*/", at_ + 2));
      else if (source_[at_] == '#' && first_on_line()) blank_to(line_end());
      else if (starts("R\"") && !is_word(at_ - 1)) blank_to(after(raw_end(), at_ + 2));
      else if (source_[at_] == '"') blank_to(literal_end());
      else if (source_[at_] == '\'' && !is_word(at_ - 1)) blank_to(literal_end());  // not in 1'000
      else ++at_;
    }
    return code_;
  }

  bool starts(std::string_view text) const { return source_.substr(at_, text.size()) == text; }
  bool is_word(size_t i) const { return i < source_.size() && (std::isalnum(source_[i]) || source_[i] == '_'); }

  bool first_on_line() const {
    size_t i = at_;
    while (i > 0 && (source_[i - 1] == ' ' || source_[i - 1] == '\t')) --i;
    return i == 0 || source_[i - 1] == '\n';
  }

  size_t line_end() const {  // a backslash at the end continues the line
    size_t end = source_.find('\n', at_);
    while (end != source_.npos && source_[end - 1] == '\\') end = source_.find('\n', end + 1);
    return std::min(end, source_.size());
  }

  size_t after(const std::string& text, size_t from) const {
    const size_t found = source_.find(text, from);
    return found == source_.npos ? source_.size() : found + text.size();
  }

  std::string raw_end() const {
    const size_t open = at_ + 2;
    std::string end(1, ')');
    end += source_.substr(open, source_.find('(', open) - open);
    return end += '"';
  }

  size_t literal_end() const {
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != source_[at_]) i += source_[i] == '\\' ? 2 : 1;
    return std::min(i + 1, source_.size());
  }

  void blank_to(size_t end) {
    for (; at_ < end; ++at_) {
      if (code_[at_] != '\n') code_[at_] = ' ';
    }
  }

  std::string_view source_;
  std::string code_;
  size_t at_ = 0;
};

inline std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c))) line += c;
    else if (!line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

class CppFunctions {
 public:
  static std::vector<Function> of(std::string_view source) { return CppFunctions(source).run(); }

 private:
  explicit CppFunctions(std::string_view source) : code_(CodeOnly::of(source)) {}

  std::vector<Function> run() {
    int parentheses = 0;
    for (at_ = 0; at_ < code_.size(); ++at_) {
      const char c = code_[at_];
      if (c == '(') ++parentheses;
      if (c == ')') --parentheses;
      if (c == ':' && is_access(header())) header_ = at_ + 1;
      if (c == ';' && parentheses == 0) header_ = at_ + 1;
      if (c == '}') header_ = at_ + 1;
      if (c == '{') open_brace(parentheses);
    }
    return functions_;
  }

  std::string header() const { return one_line(std::string_view(code_).substr(header_, at_ - header_)); }

  void open_brace(int parentheses) {
    const std::string text = header();
    if (parentheses > 0) {
      at_ = closing_brace();  // an argument
    } else if (is_scope(text)) {
      header_ = at_ + 1;
    } else if (text.empty() || text[0] == ',') {
      close_function(functions_.empty() ? 1 : functions_.back().first_line);  // after a member's braces: : a_{1} {
    } else if (text.find('(') != text.npos && text.back() != '=') {
      functions_.push_back({text, line_of(code_.find_first_not_of(" \n\t\r", header_)), 0});
      close_function(functions_.back().first_line);
    } else {
      at_ = closing_brace();  // an initialiser: the header may go on after it
    }
  }

  void close_function(int first_line) {
    at_ = closing_brace();
    header_ = at_ + 1;
    if (!functions_.empty()) functions_.back().lines = line_of(at_) - first_line + 1;
  }

  size_t closing_brace() const {
    int depth = 0;
    for (size_t i = at_; i < code_.size(); ++i) {
      if (code_[i] == '{') ++depth;
      if (code_[i] == '}' && --depth == 0) return i;
    }
    return code_.size() - 1;
  }

  int line_of(size_t position) const {
    return 1 + static_cast<int>(std::count(code_.begin(), code_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
  }

  static bool is_access(const std::string& text) {
    return text == "public" || text == "private" || text == "protected";
  }

  // namespace, class and the like, but not a function with `struct stat` as its result or `class T` as a parameter.
  static bool is_scope(const std::string& text) {
    static const std::regex parameters(R"(template ?<[^{}]*?> ?(?=[a-z])|\([^()]*\))");
    static const std::regex keyword(R"((^|[^\w])(namespace|class|struct|union|enum|extern)([^\w]|$))");
    static const std::regex function_end(R"(\)( ?(const|noexcept|override|final))*$)");
    return !std::regex_search(text, function_end) &&
           std::regex_search(std::regex_replace(text, parameters, ""), keyword);
  }

  std::string code_;
  std::vector<Function> functions_;
  size_t at_ = 0;
  size_t header_ = 0;  // where the text before the next brace begins
};

inline std::vector<Function> python_functions(std::string_view source) {
  static const std::regex definition(R"(^( *)(async )?def (\w+).*)");
  const std::vector<std::string> lines = split_lines(source);
  std::vector<Function> functions;
  for (size_t first = 0; first < lines.size(); ++first) {
    std::smatch match;
    if (!std::regex_match(lines[first], match, definition)) continue;
    const auto indent = static_cast<size_t>(match.length(1));
    size_t last = first;
    for (size_t i = first + 1; i < lines.size(); ++i) {
      const size_t column = lines[i].find_first_not_of(' ');
      if (column == std::string::npos) continue;
      if (column <= indent && lines[i][column] != ')') break;
      last = i;
    }
    functions.push_back({match.str(3), static_cast<int>(first) + 1, static_cast<int>(last - first) + 1});
  }
  return functions;
}

}  // namespace lily::house
