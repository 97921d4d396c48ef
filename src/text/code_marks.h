// Where in Markdown text code stands: between fences, or between back-ticks on a line.
#pragma once

#include <cstddef>
#include <string_view>

namespace lily {

class CodeMarks {
 public:
  void push(std::string_view text);
  bool in_fence() const { return fence_ != 0 || run_size_ >= 3; }
  bool in_code() const { return in_fence() || ticks_ % 2 == 1; }

 private:
  void push(char c);
  void end_run();
  void end_line();

  char fence_ = 0;  // the character of the open fence
  size_t fence_size_ = 0;
  char run_ = 0;  // the character that the line begins with, after at most white space
  size_t run_size_ = 0;
  bool line_start_ = true;
  bool closing_ = false;  // the line holds nothing but what closes the fence
  size_t ticks_ = 0;      // back-ticks of the line so far
};

}  // namespace lily
