#include "text/code_marks.h"

namespace lily {

void CodeMarks::push(std::string_view text) {
  for (const char c : text) push(c);
}

void CodeMarks::push(char c) {
  if (c == '\n') return end_line();
  if (c == '`') ++ticks_;
  if (line_start_ && (c == '`' || c == '~') && (run_size_ == 0 || run_ == c)) {
    run_ = c;
    ++run_size_;
    return;
  }
  const bool space = c == ' ' || c == '\t' || c == '\r';
  if (run_size_ > 0) end_run();
  line_start_ &= space;
  closing_ &= space;
}

// Three marks open a fence, as many of the same close it.
void CodeMarks::end_run() {
  line_start_ = false;
  if (fence_ == 0 && run_size_ >= 3) {
    fence_ = run_;
    fence_size_ = run_size_;
  } else {
    closing_ = fence_ != 0 && run_ == fence_ && run_size_ >= fence_size_;
  }
  run_size_ = 0;
}

void CodeMarks::end_line() {
  if (run_size_ > 0) end_run();
  if (closing_) fence_ = 0;
  closing_ = false;
  line_start_ = true;
  ticks_ = 0;
}

}  // namespace lily
