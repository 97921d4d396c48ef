// Any bytes: parse_safetensors gives an error or tensors that lie inside the file.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "model/checkpoint.h"

namespace {

void check(std::span<const std::byte> file) {
  const auto tensors = lily::parse_safetensors(file, "f");
  if (!tensors) {
    if (tensors.error().message().empty()) std::abort();
    return;
  }
  for (const auto& [name, tensor] : *tensors) {
    if (tensor.bytes == 0) continue;
    if (tensor.data < file.data() || tensor.bytes > static_cast<size_t>(file.data() + file.size() - tensor.data))
      std::abort();
    if (tensor.elements() <= 0 || tensor.describe().empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check(bytes);
  // The same bytes as a header of the right length, with some data after it: gets past the length check every time.
  const uint64_t length = size;
  std::vector<std::byte> file(8 + size + 64);
  std::memcpy(file.data(), &length, 8);
  if (size > 0) std::memcpy(file.data() + 8, data, size);
  check(file);
  return 0;
}
