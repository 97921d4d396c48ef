#include "text/json_scanner.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace lily {
namespace {

constexpr int max_skipped_depth = 64;  // of a skipped value: deeper is no data of ours

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool is_plain(char c) { return static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\'; }

bool ends_literal(char c) { return is_space(c) || c == ',' || c == ']' || c == '}'; }

}  // namespace

char JsonScanner::peek() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonScanner::take(char mark) {
  if (peek() != mark) return false;
  ++at_;
  return true;
}

bool JsonScanner::integer(int64_t& value) {
  peek();
  const char* const first = text_.data() + at_;
  const auto [end, failure] = std::from_chars(first, text_.data() + text_.size(), value);
  const auto size = static_cast<size_t>(end - first);
  if (failure != std::errc() || (at_ + size < text_.size() && !ends_literal(*end))) return false;
  at_ += size;
  return true;
}

bool JsonScanner::skip_string() {
  for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
  }
  return take('"');
}

bool JsonScanner::string(std::string_view& value) {
  if (peek() != '"') return false;
  const size_t begin = at_;
  size_t end = begin + 1;
  while (end < text_.size() && is_plain(text_[end])) ++end;
  if (end < text_.size() && text_[end] == '"') {
    value = text_.substr(begin + 1, end - begin - 1);
    at_ = end + 1;
    return true;
  }
  if (!skip_string()) return false;
  const auto literal = nlohmann::json::parse(text_.substr(begin, at_ - begin), nullptr, false);
  if (!literal.is_string()) return at_ = begin, false;
  value = unescaped_ = literal.get_ref<const std::string&>();
  return true;
}

bool JsonScanner::skip(std::string_view& value) {
  peek();
  const size_t begin = at_;
  int depth = 0;
  do {
    const char c = peek();
    if (at_ == text_.size() || depth > max_skipped_depth) return false;
    if (c == '"') {
      if (!skip_string()) return false;
    } else if (c == '{' || c == '[') {
      ++at_, ++depth;
    } else if (c == '}' || c == ']') {
      ++at_, --depth;
    } else if (c == ',' || c == ':') {
      ++at_;
    } else {
      while (at_ < text_.size() && !ends_literal(text_[at_])) ++at_;
    }
  } while (depth > 0);
  value = text_.substr(begin, at_ - begin);
  return true;
}

}  // namespace lily
