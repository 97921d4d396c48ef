// Any text: an error, or parameters that the sampler can work with.
#include <cstdlib>
#include <string_view>

#include "runtime/generation_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto params = lily::parse_generation_config({reinterpret_cast<const char*>(data), size}, "g");
  if (params ? !lily::check(*params).ok() : params.error().message().empty()) std::abort();
  return 0;
}
