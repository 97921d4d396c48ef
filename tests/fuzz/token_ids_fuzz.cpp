// Any text: an error, or ids that are the numbers of the text.
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/token_ids.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto ids = lily::parse_token_ids({reinterpret_cast<const char*>(data), size}, "t");
  if (!ids) {
    if (ids.error().message().empty()) std::abort();
    return 0;
  }
  std::string written;
  for (const int32_t id : *ids) {
    if (id < 0) std::abort();
    written += std::to_string(id) + "\n";
  }
  const auto again = lily::parse_token_ids(written, "t");
  if (!again || *again != *ids) std::abort();
  return 0;
}
