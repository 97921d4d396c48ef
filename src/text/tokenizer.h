// Bytes <-> ids: byte-level BPE as tokenizer.json describes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lily {

// A run of prompt text. Only template text (trusted) may contain added tokens such as <|im_end|> or <think>;
// in a user's text the same characters are ordinary text, so nobody can forge a turn.
struct TextPiece {
  std::string text;
  bool trusted = false;
};

class Tokenizer {
 public:
  static Result<Tokenizer> load(const std::string& path);
  static Result<Tokenizer> parse(std::string_view json, const std::string& where);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Adjacent pieces are one text for the pre-tokeniser and BPE; an added token is found only inside one trusted piece.
  std::vector<int32_t> encode(std::span<const TextPiece> pieces) const;
  std::vector<int32_t> encode(std::string_view text, bool trusted = false) const;

  // The bytes of one token; not always whole UTF-8 characters. Empty for ids the file does not know.
  std::string_view bytes_of(int32_t id) const;
  std::string decode(std::span<const int32_t> ids) const;  // added tokens included, as their text

  bool is_special(int32_t id) const;                                // added token with "special": true
  std::optional<int32_t> added_token(std::string_view text) const;  // id of "<think>", "<|im_end|>", ...
  int32_t size() const;                                             // largest id + 1

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lily
