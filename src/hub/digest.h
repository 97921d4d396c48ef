// Checksums as the Hub publishes them: SHA-256 of large files, git's blob SHA-1 of small ones.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace lily::hub {

struct Digest {
  enum class Kind { sha256, git_blob };
  Kind kind = Kind::sha256;
  std::string hex;  // lower case

  bool operator==(const Digest&) const = default;
};

// The digest of bytes as they pass.
class Hasher {
 public:
  // `size` is that of the whole file: git hashes it before the content.
  Hasher(Digest::Kind kind, int64_t size);

  void update(std::span<const std::byte> bytes);
  Digest finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  Digest::Kind kind_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
  bool good_;
};

// Feeds what `file` holds from its start to `hasher`, until its end or until `more` (told the bytes fed) says
// false.
Result<int64_t> hash_descriptor(int file, Hasher& hasher, const std::function<bool(int64_t)>& more);

}  // namespace lily::hub
