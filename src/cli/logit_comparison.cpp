#include "cli/logit_comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/mapped_file.h"
#include "model/checkpoint.h"

namespace lily::cli {
namespace {

struct LogitFile {
  MappedFile file;
  Tensor logits;

  int64_t positions() const { return logits.shape[0]; }
  int64_t vocab() const { return logits.shape[1]; }

  Result<void> read_row(int64_t position, std::vector<float>& row) const {
    row.resize(static_cast<size_t>(vocab()));
    for (size_t id = 0; id < row.size(); ++id) {
      row[id] = load_as_float(logits.data, logits.dtype, static_cast<size_t>(position) * row.size() + id);
      if (std::isfinite(row[id])) continue;
      return Error{.where = file.path() + ": logits",
                   .what = "not finite at position " + std::to_string(position) + ", id " + std::to_string(id)};
    }
    return {};
  }
};

Result<LogitFile> open_logits(const std::string& path) {
  LogitFile result;
  LILY_TRY(result.file, MappedFile::open(path));
  LILY_TRY(const TensorMap tensors, parse_safetensors(result.file.bytes(), path));
  const auto found = tensors.find("logits");
  if (found == tensors.end()) return Error{.where = path, .what = "no tensor named logits"};
  result.logits = found->second;
  const DType type = result.logits.dtype;
  const bool is_float = type == DType::f32 || type == DType::f16 || type == DType::bf16;
  if (!is_float || result.logits.shape.size() != 2 || result.logits.elements() == 0) {
    return Error{.where = path + ": logits",
                 .what = "wrong tensor",
                 .expected = "F32, F16 or BF16 [tokens, vocab]",
                 .got = result.logits.describe()};
  }
  return result;
}

struct Best {
  size_t id;
  double margin;  // over the second
};

Best best_of(std::span<const float> row) {
  size_t best = 0;
  float second = -std::numeric_limits<float>::infinity();
  for (size_t id = 1; id < row.size(); ++id) {
    if (row[id] > row[best]) {
      second = row[best];
      best = id;
    } else {
      second = std::max(second, row[id]);
    }
  }
  return {.id = best, .margin = double{row[best]} - second};
}

double log_sum_exp(std::span<const float> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

double divergence(std::span<const float> a, std::span<const float> b) {
  const double total_a = log_sum_exp(a);
  const double total_b = log_sum_exp(b);
  double sum = 0;
  for (size_t id = 0; id < b.size(); ++id) {
    const double log_b = b[id] - total_b;
    sum += std::exp(log_b) * (log_b - (a[id] - total_a));
  }
  return sum;
}

// Sums over the rows, turned into the comparison's figures at the end.
class Comparer {
 public:
  Comparer(int64_t vocab, const std::vector<double>& margins) {
    result_.vocab = vocab;
    for (const double margin : margins) result_.agreements.push_back({.margin = margin});
  }

  void add(std::span<const float> a, std::span<const float> b) {
    for (size_t id = 0; id < b.size(); ++id) add_error(a[id], b[id], static_cast<int64_t>(id));
    divergence_ += divergence(a, b);
    const Best best_a = best_of(a);
    const Best best_b = best_of(b);
    for (TopOneAgreement& agreement : result_.agreements) {
      if (best_b.margin <= agreement.margin) continue;
      ++agreement.positions;
      agreement.equal += best_a.id == best_b.id;
    }
    ++result_.positions;
  }

  LogitComparison finish() {
    result_.relative_error = std::sqrt(errors_ / std::max(squares_, std::numeric_limits<double>::min()));
    result_.mean_kl = divergence_ / static_cast<double>(result_.positions);
    return std::move(result_);
  }

 private:
  void add_error(float a, float b, int64_t id) {
    const double error = double{a} - b;
    errors_ += error * error;
    squares_ += double{b} * b;
    if (std::abs(error) <= result_.largest_error) return;
    result_.largest_error = std::abs(error);
    result_.position = result_.positions;
    result_.id = id;
    result_.a = a;
    result_.b = b;
  }

  LogitComparison result_;
  double errors_ = 0, squares_ = 0, divergence_ = 0;
};

}  // namespace

Result<LogitComparison> compare_logits(const std::string& file_a, const std::string& file_b,
                                       const std::vector<double>& margins) {
  LILY_TRY(const LogitFile a, open_logits(file_a));
  LILY_TRY(const LogitFile b, open_logits(file_b));
  if (a.logits.shape != b.logits.shape) {
    return Error{.where = file_a + ": logits",
                 .what = "shapes differ",
                 .expected = b.logits.describe(),
                 .got = a.logits.describe()};
  }
  Comparer comparer(b.vocab(), margins);
  std::vector<float> row_a, row_b;  // [vocab]
  for (int64_t position = 0; position < b.positions(); ++position) {
    LILY_CHECK(a.read_row(position, row_a));
    LILY_CHECK(b.read_row(position, row_b));
    comparer.add(row_a, row_b);
  }
  return comparer.finish();
}

}  // namespace lily::cli
