#include "text/python_literal.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "text/json_escape.h"
#include "text/utf8.h"

namespace lily {
namespace {

constexpr int max_literal_depth = 100;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_surrogate(uint32_t code) { return code >= 0xD800 && code < 0xE000; }

void append_utf8(std::string& text, uint32_t code) {
  if (code > 0x10FFFF || is_surrogate(code)) {
    text += replacement_character;
  } else if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  } else if (code < 0x10000) {
    text += {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
             static_cast<char>(0x80 | (code & 0x3F))};
  } else {
    text += {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3F)),
             static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
  }
}

// Each step appends JSON and says whether it could.
class Converter {
 public:
  explicit Converter(std::string_view text) : text_(text) {}

  std::optional<std::string> run() {
    if (!value(0) || peek() != 0) return std::nullopt;
    return std::move(json_);
  }

 private:
  char peek() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool value(int depth) {
    switch (peek()) {
      case '{': return depth < max_literal_depth && dictionary(depth);
      case '[': return depth < max_literal_depth && sequence(']', depth);
      case '(': return depth < max_literal_depth && sequence(')', depth);
      case '"':
      case '\'': return string();
      default: return word();
    }
  }

  bool dictionary(int depth) {
    ++at_;
    json_ += '{';
    for (bool first = true; peek() != '}'; first = false) {
      if (!first && !comma()) return false;
      if (peek() == '}') break;
      if (!first) json_ += ',';
      if (!key() || peek() != ':') return false;
      ++at_;
      json_ += ':';
      if (!value(depth + 1)) return false;
    }
    ++at_;
    json_ += '}';
    return true;
  }

  bool sequence(char end, int depth) {
    ++at_;
    json_ += '[';
    for (bool first = true; peek() != end; first = false) {
      if (!first && !comma()) return false;
      if (peek() == end) break;
      if (!first) json_ += ',';
      if (!value(depth + 1)) return false;
    }
    ++at_;
    json_ += ']';
    return true;
  }

  bool comma() {
    if (peek() != ',') return false;
    ++at_;
    return true;
  }

  bool key() {
    if (peek() == '"' || peek() == '\'') return string();
    json_ += '"';
    if (!word()) return false;
    json_ += '"';
    return true;
  }

  bool word() {
    peek();
    const size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_]) &&
           std::string_view(",:]})").find(text_[at_]) == std::string::npos) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "True" || word == "true") return json_ += "true", true;
    if (word == "False" || word == "false") return json_ += "false", true;
    if (word == "None" || word == "null") return json_ += "null", true;
    const bool number = !word.empty() && word[0] != '"' && word[0] != '{' && word[0] != '[';
    if (!number || !nlohmann::json::accept(word)) return false;
    json_ += word;
    return true;
  }

  bool string() {
    const char quote = text_[at_++];
    std::string content;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        escape(content);
      } else {
        content += text_[at_++];
      }
    }
    if (at_ == text_.size()) return false;
    ++at_;
    json_ += json_quoted(content);
    return true;
  }

  void escape(std::string& content) {
    constexpr std::string_view letters = "ntrbfav0\\'\"", meanings("\n\t\r\b\f\a\v\0\\'\"", 11);
    const char letter = text_[at_ + 1];
    at_ += 2;
    if (letter == '\n') return;
    const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    if (const size_t known = letters.find(letter); known != letters.npos) {
      content += meanings[known];
    } else if (const auto code = digits > 0 ? hex(digits) : std::nullopt) {
      append_utf8(content, second_half(*code));
    } else {
      content += '\\';
      content += letter;
    }
  }

  std::optional<uint32_t> hex(size_t digits) {
    if (text_.size() - at_ < digits) return std::nullopt;
    uint32_t code = 0;
    const char* const end = text_.data() + at_ + digits;
    const auto [stop, failure] = std::from_chars(text_.data() + at_, end, code, 16);
    if (failure != std::errc() || stop != end) return std::nullopt;
    at_ += digits;
    return code;
  }

  // A character beyond 16 bits may be written as two escapes.
  uint32_t second_half(uint32_t code) {
    if (code < 0xD800 || code >= 0xDC00 || text_.substr(at_, 2) != "\\u") return code;
    const size_t back = at_;
    at_ += 2;
    const auto low = hex(4);
    if (low && *low >= 0xDC00 && *low < 0xE000) return 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
    at_ = back;
    return code;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string json_;
};

}  // namespace

std::optional<std::string> json_of_python(std::string_view literal) { return Converter(literal).run(); }

}  // namespace lily
