// Any body: an error that names its status, or a request whose reply is valid JSON.
#include "../server/api_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lily::test::fuzz_api(lily::server::messages_api(), {reinterpret_cast<const char*>(data), size});
  return 0;
}
