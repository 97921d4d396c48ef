// tokenizer.json, read in one pass: the two big tables into flat arrays, all the rest into a small document.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lily {

struct TokenizerJson {
  struct Token {
    uint32_t offset, size;  // in token_bytes
    int64_t id;
  };
  struct Merge {
    uint32_t offset, left, right;  // in merge_bytes: `left` bytes, then `right` bytes
  };

  nlohmann::json document;  // model.vocab and model.merges are empty here
  std::string token_bytes;
  std::vector<Token> tokens;
  std::string merge_bytes;
  std::vector<Merge> merges;
};

Result<TokenizerJson> read_tokenizer_json(std::string_view json, const std::string& where);

// `text` for an error line: in quotes, escaped, cut to a readable length.
std::string excerpt(std::string_view text);

}  // namespace lily
