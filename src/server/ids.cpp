#include "server/ids.h"

#include <random>
#include <string_view>

namespace lily::server {

uint64_t new_seed() {
  thread_local std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string new_id(const std::string& prefix) {
  constexpr std::string_view symbols = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string id = prefix;
  for (int part = 0; part < 3; ++part) {
    uint64_t bits = new_seed();
    for (int i = 0; i < 8; ++i, bits /= symbols.size()) id += symbols[bits % symbols.size()];
  }
  return id;
}

}  // namespace lily::server
