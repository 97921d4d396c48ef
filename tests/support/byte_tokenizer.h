// A tokenizer whose ids 0 to 255 are the bytes, followed by whole words and the tokens of the chat template.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/byte_tokenizer_json.h"
#include "text/tokenizer.h"

namespace lily::test {

// See byte_tokenizer_json.
inline Tokenizer byte_tokenizer(const std::vector<std::string>& words = {}) {
  Result<Tokenizer> tokenizer = Tokenizer::parse(byte_tokenizer_json(words), "byte_tokenizer");
  if (!tokenizer) ADD_FAILURE() << tokenizer.error().message();
  return std::move(tokenizer).value();
}

}  // namespace lily::test
