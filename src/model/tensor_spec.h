// What a tensor is without its data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace lily {

struct TensorSpec {
  std::string name;
  DType dtype = DType::other;
  std::vector<int64_t> shape;

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    return count;
  }
  int64_t bytes() const { return elements() * static_cast<int64_t>(size_of(dtype)); }
};

}  // namespace lily
