// How far one array is from another, with the worst element named.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>

namespace lily::test {

struct Difference {
  double relative = 0;  // ||a - b|| / ||b||
  double worst = 0;     // largest |a - b|, at `index`
  size_t index = 0;
  bool finite = true;

  std::string text() const {
    std::ostringstream out;
    out << "relative error " << relative << ", worst element " << index << " off by " << worst;
    if (!finite) out << ", not finite";
    return out.str();
  }
};

inline Difference difference(std::span<const float> a, std::span<const float> b) {
  Difference d;
  double error = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double delta = double{a[i]} - b[i];
    if (!std::isfinite(delta)) d.finite = false;
    error += delta * delta;
    norm += double{b[i]} * b[i];
    if (std::abs(delta) > d.worst) {
      d.worst = std::abs(delta);
      d.index = i;
    }
  }
  d.relative = std::sqrt(error / std::max(norm, 1e-30));
  if (a.size() != b.size()) d.finite = false;
  return d;
}

struct Agreement {
  int64_t positions = 0, equal = 0;
};

// Top-1 agreement of logits a with b [rows, vocab] at the rows where b's best leads its second by more than `margin`.
inline Agreement top1_agreement(std::span<const float> a, std::span<const float> b, size_t vocab, float margin) {
  Agreement result;
  for (size_t row = 0; row + vocab <= b.size(); row += vocab) {
    const auto best = std::max_element(b.begin() + row, b.begin() + row + vocab);
    float second = -INFINITY;
    for (auto it = b.begin() + row; it != b.begin() + row + vocab; ++it) {
      if (it != best) second = std::max(second, *it);
    }
    if (*best - second <= margin) continue;
    ++result.positions;
    const auto chosen = std::max_element(a.begin() + row, a.begin() + row + vocab);
    result.equal += chosen - a.begin() == best - b.begin();
  }
  return result;
}

}  // namespace lily::test
