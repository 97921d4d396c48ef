// What the user has already set up for the Hugging Face Hub on this machine: the same variables and files
// that its own programs read.
#pragma once

#include <string>

#include "base/result.h"

namespace lily::hub {

// $HF_ENDPOINT (a mirror) or https://huggingface.co; without a slash at the end.
Result<std::string> endpoint();

struct Token {
  std::string value;   // empty: none
  std::string origin;  // the variable or file that it came from
};

// $HF_TOKEN, else the file that `hf auth login` writes.
Result<Token> access_token();

// The folder that holds models--ORGANISATION--NAME: $HF_HUB_CACHE, else hub/ in $HF_HOME or
// ~/.cache/huggingface.
std::string cache_directory();

}  // namespace lily::hub
