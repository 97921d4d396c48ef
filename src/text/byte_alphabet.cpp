#include "text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace lily {
namespace {

// Printable Latin-1 characters stand for themselves; the other bytes, in order, for U+0100 and up.
constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int alphabet_end = 0x100 + 68;

constexpr std::array<int16_t, alphabet_end> make_byte_of_character() {
  std::array<int16_t, alphabet_end> table{};
  for (auto& byte : table) byte = -1;
  int next = 0x100;
  for (int byte = 0; byte < 0x100; ++byte) {
    table[static_cast<size_t>(stands_for_itself(byte) ? byte : next++)] = static_cast<int16_t>(byte);
  }
  return table;
}

constexpr auto byte_of_character = make_byte_of_character();

// The code point that begins at `at`, which moves to its last byte; -1: none below U+0180, so none of the alphabet.
int alphabet_character(std::string_view token, size_t& at) {
  const auto first = static_cast<uint8_t>(token[at]);
  if (first < 0x80) return first;
  if (first < 0xC2 || first > 0xC5 || at + 1 == token.size()) return -1;
  const auto second = static_cast<uint8_t>(token[++at]);
  return (second & 0xC0) == 0x80 ? (first & 0x1F) << 6 | (second & 0x3F) : -1;
}

}  // namespace

bool append_token_bytes(std::string_view token, std::string& bytes) {
  const size_t start = bytes.size();
  bytes.resize(start + token.size());
  char* out = bytes.data() + start;
  for (size_t i = 0; i < token.size(); ++i) {
    const int character = alphabet_character(token, i);
    const bool known = character >= 0 && character < alphabet_end;
    const int byte = known ? byte_of_character[static_cast<size_t>(character)] : -1;
    if (byte < 0) {
      bytes.replace(start, std::string::npos, token);
      return valid_utf8_prefix(token) == token.size();
    }
    *out++ = static_cast<char>(byte);
  }
  bytes.resize(static_cast<size_t>(out - bytes.data()));
  return true;
}

}  // namespace lily
