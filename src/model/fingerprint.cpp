#include "model/fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace lily {

std::string fingerprint(const Checkpoint& checkpoint) {
  constexpr size_t sample = 64;  // bytes of a tensor
  std::string text;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    text += name + " " + tensor.describe() + "\n";
    text.append(reinterpret_cast<const char*>(tensor.data), std::min(sample, tensor.bytes));
  }
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

}  // namespace lily
