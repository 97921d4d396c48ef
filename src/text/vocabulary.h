// Token bytes by id, ids by token bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer_fields.h"
#include "text/tokenizer_json.h"

namespace lily {

class Vocabulary {
 public:
  enum class Kind : uint8_t { absent, ordinary, added, special };

  // Takes the token table out of `json`. An added token may stand in it too, with the same id.
  static Result<Vocabulary> make(TokenizerJson& json, std::span<const AddedToken> added, const std::string& where);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }  // largest id + 1
  Kind kind(int32_t id) const;                                           // absent for an unknown id
  std::string_view bytes_of(int32_t id) const;                           // empty for an unknown id
  std::optional<int32_t> id_of(std::string_view bytes) const;

 private:
  struct Token {
    uint32_t offset = 0, size = 0;  // in bytes_
    Kind kind = Kind::absent;
  };

  Result<void> add(Token token, int64_t id, const std::string& where);
  Result<void> add(const AddedToken& token, const std::string& where);
  size_t slot_of(std::string_view bytes) const;  // where its id is, or a free slot

  std::string bytes_;
  std::vector<Token> tokens_;   // [id]
  std::vector<int32_t> slots_;  // open addressing over the bytes, a power of two, at most half full; -1: free
};

}  // namespace lily
