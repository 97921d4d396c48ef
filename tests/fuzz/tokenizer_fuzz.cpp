// Any file is a tokenizer or an error; a tokenizer encodes any text without losing a byte or forging an added token.
// Input: tokenizer.json, optionally a NUL byte and a text.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace {

using Json = nlohmann::json;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_text(const lily::Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text);
  for (const int32_t id : ids) {
    require(id >= 0 && id < tokenizer.size());
    require(tokenizer.added_token(tokenizer.bytes_of(id)) != id);
  }
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (ascii) require(tokenizer.decode(ids) == text);  // other text may be normalised
  tokenizer.encode(text, true);
}

// Mutations rarely leave all 256 byte tokens intact, so the text also meets a tokenizer that is known to load.
const lily::Tokenizer& small_tokenizer() {
  static const lily::Tokenizer tokenizer = [] {
    Json vocab, file;
    for (int byte = 0, next = 0x100; byte < 0x100; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const int character = printable ? byte : next++;
      const char two_bytes[] = {static_cast<char>(0xC0 | character >> 6), static_cast<char>(0x80 | (character & 0x3F))};
      vocab[character < 0x80 ? std::string(1, static_cast<char>(character)) : std::string(two_bytes, 2)] = byte;
    }
    vocab.update({{"ab", 256}, {"aba", 257}, {"Ġa", 258}, {"||", 259}});
    file["model"] = {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b", "ab a", "Ġ a", "| |"}}};
    file["added_tokens"] = {{{"id", 300}, {"content", "<|a|>"}, {"normalized", false}, {"special", true}}};
    file["normalizer"] = {{"type", "NFC"}};
    file["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
    auto parsed = lily::Tokenizer::parse(file.dump(), "small tokenizer");
    require(parsed.ok());
    return std::move(parsed).value();
  }();
  return tokenizer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view text = end == input.npos ? input : input.substr(end + 1);
  check_text(small_tokenizer(), text);
  const auto tokenizer = lily::Tokenizer::parse(input.substr(0, end), "fuzz");
  if (tokenizer) {
    check_text(tokenizer.value(), text.substr(0, 1000));  // patterns that explode would take the fuzzer's time
  } else {
    require(tokenizer.error().where == "fuzz" && !tokenizer.error().message().empty());
  }
  return 0;
}
