// Walks JSON text without building it: for tables so large that a document of them would cost a noticeable start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lily {

// Each step takes one thing and the white space before it. False: it is not there, or is malformed; the walk ends.
// Strings are not checked to be UTF-8.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  size_t position() const { return at_; }
  char peek();  // the next character that is not white space; 0: the end
  bool take(char mark);
  bool integer(int64_t& value);
  bool string(std::string_view& value);  // valid until the next string
  bool skip(std::string_view& value);    // any value, as it stands; its brackets and commas are not checked

  template <class Member>  // bool(std::string_view key), which takes the value
  bool object(Member member) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      std::string_view key;
      if (!string(key) || !take(':') || !member(key)) return false;
    } while (take(','));
    return take('}');
  }

  template <class Element>  // bool(), which takes the element
  bool array(Element element) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      if (!element()) return false;
    } while (take(','));
    return take(']');
  }

 private:
  bool skip_string();

  std::string_view text_;
  size_t at_ = 0;
  std::string unescaped_;
};

}  // namespace lily
