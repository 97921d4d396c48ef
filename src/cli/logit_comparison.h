// How far one engine's logits are from another's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace lily::cli {

// Positions where the reference's best id leads its second by more than `margin`, and those where both agree on it.
struct TopOneAgreement {
  double margin = 0;
  int64_t positions = 0, equal = 0;
};

struct LogitComparison {
  int64_t positions = 0, vocab = 0;
  double relative_error = 0;  // ||a - b|| / ||b||
  double largest_error = 0;   // |a - b|, there:
  int64_t position = 0, id = 0;
  float a = 0, b = 0;
  double mean_kl = 0;                       // of a's distribution from b's, in nats
  std::vector<TopOneAgreement> agreements;  // one for every margin asked for
};

// Compares the tensors `logits` [tokens, vocab] (f32, f16 or bf16) of two safetensors files; b is the reference.
Result<LogitComparison> compare_logits(const std::string& file_a, const std::string& file_b,
                                       const std::vector<double>& margins);

}  // namespace lily::cli
