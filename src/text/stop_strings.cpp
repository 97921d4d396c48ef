#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace lily {
namespace {

// Length of the longest stop string that `text` ends with.
size_t match_at_end(std::string_view text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string& stop : stops) {
    if (text.ends_with(stop)) longest = std::max(longest, stop.size());
  }
  return longest;
}

// Length of the longest end of `text` that a stop string starts with.
size_t partial_match(std::string_view text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string_view stop : stops) {
    for (size_t length = std::min(text.size(), stop.size()); length > longest; --length) {
      if (text.ends_with(stop.substr(0, length))) longest = length;
    }
  }
  return longest;
}

}  // namespace

std::string StopStrings::push(std::string_view text) {
  if (matched_) return {};
  const size_t known = held_.size();  // nothing ends in there: it was looked at before
  held_ += text;
  for (size_t end = known + 1; end <= held_.size(); ++end) {
    if (const size_t length = match_at_end(std::string_view(held_).substr(0, end), stops_)) {
      matched_ = true;
      return std::exchange(held_, {}).substr(0, end - length);
    }
  }
  std::string ready = held_.substr(0, held_.size() - partial_match(held_, stops_));
  held_.erase(0, ready.size());
  return ready;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace lily
