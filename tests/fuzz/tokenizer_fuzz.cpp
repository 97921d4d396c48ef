// Any file is a tokenizer or an error; a tokenizer encodes any text without losing a byte or forging an added token.
// Input: tokenizer.json, optionally a NUL byte and a text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_text(const lily::Tokenizer& tokenizer, std::string_view text) {
  const auto ids = tokenizer.encode(text);
  for (const int32_t id : ids) {
    require(id >= 0 && id < tokenizer.size());
    require(tokenizer.added_token(tokenizer.bytes_of(id)) != id);
  }
  const bool ascii = text.find_first_not_of("\t\n !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
                                            "abcdefghijklmnopqrstuvwxyz{|}~") == text.npos;
  if (ascii) require(tokenizer.decode(ids) == text);  // other text may be normalised
  tokenizer.encode(text, true);
}

// Mutations rarely keep 256 byte tokens intact, so the text also meets a tokenizer that is known to load.
const lily::Tokenizer& byte_tokenizer() {
  static const lily::Tokenizer tokenizer = [] {
    std::string vocab, merges;
    int next = 0x100;
    for (int byte = 0; byte < 0x100; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const int character = printable ? byte : next++;
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(character));
      vocab += (byte ? ",\"" : "\"") + std::string(escape) + "\":" + std::to_string(byte);
    }
    vocab += R"(,"ab":256,"aba":257,"\u0120a":258,"||":259)";
    merges = R"(["a","b"],["ab","a"],["\u0120","a"],["|","|"])";
    const std::string split =
        R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*)"
        R"(|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
    const std::string json =
        R"({"added_tokens":[{"id":300,"content":"<|a|>","normalized":false,"special":true}],"normalizer":{"type":"NFC"},)"
        R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" + split +
        R"("},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},)"
        R"("model":{"type":"BPE","vocab":{)" + vocab + R"(},"merges":[)" + merges + "]}}";
    auto parsed = lily::Tokenizer::parse(json, "byte tokenizer");
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
  check_text(byte_tokenizer(), text);
  const auto tokenizer = lily::Tokenizer::parse(input.substr(0, end), "fuzz");
  if (tokenizer) {
    check_text(tokenizer.value(), text.substr(0, 1000));  // patterns that explode would take the fuzzer's time
  } else {
    require(tokenizer.error().where == "fuzz" && !tokenizer.error().message().empty());
  }
  return 0;
}
