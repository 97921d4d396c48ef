// Bytes in any cuts -> whole UTF-8 characters. What cannot become valid UTF-8 comes out as U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace lily {

class Utf8Stream {
 public:
  // Takes more bytes, gives back what is complete. Never half a character.
  std::string push(std::string_view bytes);
  // The end of the stream: what is still held back, replaced by U+FFFD.
  std::string finish();

 private:
  std::string pending_;  // at most 3 bytes: a prefix of one character
};

}  // namespace lily
