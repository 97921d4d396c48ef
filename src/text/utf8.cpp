#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace lily {
namespace {

// What may follow a lead byte: `count` continuation bytes, the first of them within [low, high].
struct Continuation {
  size_t count;
  uint8_t low, high;
};

Continuation continuation_of(uint8_t lead) {
  if (lead < 0xC2 || lead > 0xF4) return {0, 0, 0};
  if (lead < 0xE0) return {1, 0x80, 0xBF};
  if (lead == 0xE0) return {2, 0xA0, 0xBF};  // shorter forms exist below
  if (lead == 0xED) return {2, 0x80, 0x9F};  // surrogates above
  if (lead < 0xF0) return {2, 0x80, 0xBF};
  if (lead == 0xF0) return {3, 0x90, 0xBF};  // shorter forms exist below
  if (lead == 0xF4) return {3, 0x80, 0x8F};  // past U+10FFFF above
  return {3, 0x80, 0xBF};
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  using Kind = Utf8Step::Kind;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {Kind::character, 1};
  auto [count, low, high] = continuation_of(byte(0));
  if (count == 0) return {Kind::malformed, 1};
  for (size_t i = 1; i <= count; ++i) {
    if (i == text.size()) return {Kind::truncated, i};
    if (byte(i) < low || byte(i) > high) return {Kind::malformed, i};
    low = 0x80, high = 0xBF;
  }
  return {Kind::character, count + 1};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = ~uint64_t{0};
    if (text.size() - at >= 8) std::memcpy(&eight, text.data() + at, 8);
    if ((eight & 0x8080808080808080u) == 0) {
      at += 8;
      continue;
    }
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::character) break;
    at += step.size;
  }
  return at;
}

char32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(character[i])); };
  if (character.size() == 1) return byte(0);
  char32_t value = byte(0) & (0x7Fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) value = value << 6 | (byte(i) & 0x3Fu);
  return value;
}

}  // namespace lily
