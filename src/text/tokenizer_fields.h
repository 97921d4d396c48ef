// The small fields of tokenizer.json. What would change ids and is not done here is an error, never skipped.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace lily {

struct AddedToken {
  std::string content;
  int32_t id;
  bool special;
};

struct TokenizerFields {
  bool nfc = false;            // normalise text to Unicode form C first
  std::string split_pattern;   // the pre-tokeniser's regular expression
  bool ignore_merges = false;  // a pre-token that is a whole token needs no merges
  std::vector<AddedToken> added_tokens;
};

constexpr int32_t max_token_id = (1 << 22) - 1;  // published vocabularies stay under 300,000

Result<TokenizerFields> read_tokenizer_fields(const nlohmann::json& document, const std::string& where);

}  // namespace lily
