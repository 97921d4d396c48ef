// Names that nobody can guess or meet twice.
#pragma once

#include <cstdint>
#include <string>

namespace lily::server {

std::string new_id(const std::string& prefix);  // the prefix and 24 letters and digits
uint64_t new_seed();

}  // namespace lily::server
