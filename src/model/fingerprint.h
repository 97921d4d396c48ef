// Tells checkpoints apart, for files that belong to one of them.
#pragma once

#include <string>

#include "model/checkpoint.h"

namespace lily {

// 16 hexadecimal digits of the names, types and shapes of all tensors and the first bytes of each. Quick: a weight changed in
// the middle of a tensor is not seen.
std::string fingerprint(const Checkpoint& checkpoint);

}  // namespace lily
