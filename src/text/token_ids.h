// A list of token ids as people and files write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lily {

// Whitespace-separated decimal ids, at least one. `where` names the text in errors.
Result<std::vector<int32_t>> parse_token_ids(std::string_view text, const std::string& where);

}  // namespace lily
