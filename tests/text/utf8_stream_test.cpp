#include "text/utf8_stream.h"

#include <gtest/gtest.h>

#include "text/utf8.h"

namespace lily {
namespace {

struct Case {
  std::string bytes, text;
};

const std::string r(replacement_character);

// Each maximal subpart of a malformed sequence becomes one U+FFFD, as Unicode recommends.
const Case cases[] = {
    {"", ""},
    {"plain", "plain"},
    {std::string("a\0b", 3), std::string("a\0b", 3)},
    {"é灯🙂", "é灯🙂"},
    {"\u007F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF",
     "\u007F\u0080\u07FF\u0800\uD7FF\uE000\uFFFF\U00010000\U0010FFFF"},
    {"👩‍👩‍👧‍👦 e\u0301 \uFFFD", "👩‍👩‍👧‍👦 e\u0301 \uFFFD"},
    {"\x80", r},
    {"\xFF\xFE", r + r},
    {"\xC0\xAF", r + r},                  // overlong
    {"\xE0\x80\xBF", r + r + r},          // overlong
    {"\xF0\x8F\xBF\xBF", r + r + r + r},  // overlong
    {"\xED\xA0\x80", r + r + r},          // surrogate
    {"\xF4\x90\x80\x80", r + r + r + r},  // past U+10FFFF
    {"\xF5\x80", r + r},
    {"\xE7\x81", r},  // cut at the end
    {"\xF0\x9F\x99", r},
    {"\xF0\x9F", r},
    {"\xC3", r},
    {"\xC3(", r + "("},
    {"\xE7\x81x", r + "x"},
    {"\xF0\x9F\x99x", r + "x"},
    {"\xE7\x81\xE7\x81\xAF", r + "灯"},
    {"\xF0\x9F\xF0\x9F\x99\x82", r + "🙂"},
    // The examples of the Unicode Standard, tables 3-8 to 3-11.
    {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", r + r + r + r + r + r + r + r + "A"},
    {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", r + r + r + r + r + r + r + r + "A"},
    {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", r + r + r + r + r + "A" + r + r + "B"},
    {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", r + r + r + r + "A"},
};

bool is_valid(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

TEST(Utf8Stream, OneShot) {
  for (const Case& c : cases) {
    Utf8Stream stream;
    const std::string head = stream.push(c.bytes);
    EXPECT_TRUE(is_valid(head));
    EXPECT_EQ(head + stream.finish(), c.text);
  }
}

TEST(Utf8Stream, EveryTwoCuts) {
  for (const Case& c : cases) {
    for (size_t first = 0; first <= c.bytes.size(); ++first) {
      for (size_t second = first; second <= c.bytes.size(); ++second) {
        Utf8Stream stream;
        std::string text;
        for (const auto& part :
             {c.bytes.substr(0, first), c.bytes.substr(first, second - first), c.bytes.substr(second)}) {
          const std::string out = stream.push(part);
          EXPECT_TRUE(is_valid(out));
          text += out;
        }
        EXPECT_EQ(text + stream.finish(), c.text);
      }
    }
  }
}

TEST(Utf8Stream, ByteByByte) {
  for (const Case& c : cases) {
    Utf8Stream stream;
    std::string text;
    for (const char byte : c.bytes) text += stream.push({&byte, 1});
    EXPECT_EQ(text + stream.finish(), c.text);
  }
}

TEST(Utf8Stream, HoldsBackOnlyWhatMayStillBecomeACharacter) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.push("\x99"), "");
  EXPECT_EQ(stream.push("\x82z"), "🙂z");
  EXPECT_EQ(stream.push("\xE0\x80"), r + r);  // no character begins so: nothing to wait for
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, StartsAgainAfterTheEnd) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xE7"), "");
  EXPECT_EQ(stream.finish(), r);
  EXPECT_EQ(stream.push("\x81"), r);
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8, CodePoints) {
  EXPECT_EQ(code_point("a"), U'a');
  EXPECT_EQ(code_point("é"), U'é');
  EXPECT_EQ(code_point("灯"), U'灯');
  EXPECT_EQ(code_point("🙂"), U'🙂');
}

}  // namespace
}  // namespace lily
