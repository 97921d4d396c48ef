// Whatever a Host header holds, only names of this machine pass; what passes is what a browser would take for one.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/access.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto access = lily::server::Access::create({});
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (access->allows_host(text)) {
    const auto parsed = lily::server::parse_host(text);
    if (!parsed) std::abort();
    const std::string& host = parsed->host;
    const bool numeric = host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos;
    if (host != "localhost" && !numeric && !host.starts_with('[')) std::abort();
  }
  const auto origin = access->allow_origin(text, "localhost:8080");
  if (origin && !origin->empty()) std::abort();
  return 0;
}
