// Ends a text at the first of several stop strings, however the text is cut into pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lily {

// The stop string that is complete first wins, the longest where two end together; so the cut does not depend on pieces.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Takes more text, gives what certainly stands before any stop string. After a match it gives nothing more.
  std::string push(std::string_view text);
  // The end of the text: what was held back as the possible start of a stop string.
  std::string finish();

  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // the longest end of the text that starts a stop string
  bool matched_ = false;
};

}  // namespace lily
