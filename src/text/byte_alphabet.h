// The byte alphabet of byte-level BPE: tokenizer.json writes each byte as one printable character.
#pragma once

#include <string>
#include <string_view>

namespace lily {

// Appends the bytes that `token` stands for; a token with a character outside the alphabet stands for its own text.
// False: the token is not UTF-8.
bool append_token_bytes(std::string_view token, std::string& bytes);

}  // namespace lily
