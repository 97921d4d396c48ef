// Finds added tokens (<|im_end|>, <think>, ...) in template text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer_fields.h"

namespace lily {

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    size_t begin, size;
    int32_t id;
  };
  // The leftmost, and of those that begin there the longest.
  std::optional<Match> find(std::string_view text) const;
  std::optional<int32_t> id_of(std::string_view content) const;

 private:
  std::span<const AddedToken> beginning_with(char first) const;

  std::vector<AddedToken> tokens_;      // by first byte, longest first
  std::array<uint32_t, 257> starts_{};  // tokens_[starts_[b] .. starts_[b + 1]) begin with byte b
};

}  // namespace lily
