// Whatever the cuts: the same text as in one push, always whole characters, and well-formed input unchanged.
// Input: a byte that seeds the cuts, then the stream.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/utf8.h"
#include "text/utf8_stream.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

bool is_valid(std::string_view text) { return lily::valid_utf8_prefix(text) == text.size(); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);

  lily::Utf8Stream whole;
  std::string expected = whole.push(bytes);
  expected += whole.finish();
  require(is_valid(expected));
  if (is_valid(bytes)) require(expected == bytes);

  lily::Utf8Stream stream;
  std::string text;
  uint32_t random = data[0];
  for (size_t at = 0; at < bytes.size();) {
    random = random * 1664525u + 1013904223u;
    const size_t count = (random >> 24) % 5;
    const std::string out = stream.push(bytes.substr(at, count));
    require(is_valid(out));
    text += out;
    at += count;
  }
  const std::string tail = stream.finish();
  require(tail.empty() || tail == lily::replacement_character);
  require(text + tail == expected);
  return 0;
}
