#include "hub/digest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

namespace lily::hub {

Hasher::Hasher(Digest::Kind kind, int64_t size) : kind_(kind), context_(EVP_MD_CTX_new()) {
  good_ = context_ &&
          EVP_DigestInit_ex(context_.get(), kind == Digest::Kind::sha256 ? EVP_sha256() : EVP_sha1(), nullptr) == 1;
  if (kind == Digest::Kind::git_blob) {
    const std::string header = fmt::format("blob {}", size);
    update(std::as_bytes(std::span(header.c_str(), header.size() + 1)));  // the closing zero is part of it
  }
}

void Hasher::update(std::span<const std::byte> bytes) {
  good_ = good_ && EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1;
}

Digest Hasher::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  good_ = good_ && EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1;
  std::string hex;
  // A library that refuses SHA-1 leaves this empty, which no file matches.
  for (unsigned i = 0; good_ && i < size; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return {kind_, hex};
}

Result<int64_t> hash_descriptor(int file, Hasher& hasher, const std::function<bool(int64_t)>& more) {
  std::vector<std::byte> buffer(1 << 20);
  int64_t total = 0;
  while (true) {
    const ssize_t count = ::pread(file, buffer.data(), buffer.size(), total);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{.what = fmt::format("cannot read: {}", std::strerror(errno)), .exit_code = 1};
    if (count == 0) return total;
    hasher.update({buffer.data(), static_cast<size_t>(count)});
    total += count;
    if (!more(count)) return total;
  }
}

}  // namespace lily::hub
