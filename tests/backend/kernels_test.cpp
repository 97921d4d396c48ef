// One case table for the CPU's kernels: every kernel on every instruction set that this machine has, against scalar
// double arithmetic.
//
// Tolerance of a sum of n float32 products: each partial sum rounds by at most 2^-24 of the sum of magnitudes, and
// lanes keep the chains short, so |error| <= 8 * 2^-24 * sum |a_i b_i| holds with room for n up to some thousands.
#include "backend/cpu/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/aligned_vector.h"
#include "model/weights.h"

namespace lily::cpu {
namespace {

using Floats = std::vector<float>;

constexpr double sum_error = 8 * 0x1p-24;
constexpr float poison = 12345.0f;

class KernelTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    kernels_ = select_kernels(GetParam());
    ASSERT_NE(kernels_, nullptr);
    ASSERT_STREQ(kernels_->isa, GetParam());
  }

  Floats random(size_t n, float scale = 1.0f) {
    std::normal_distribution<float> normal(0.0f, scale);
    Floats values(n);
    for (float& v : values) v = normal(generator_);
    return values;
  }

  const Kernels* kernels_ = nullptr;
  std::mt19937 generator_{7};
};

struct Sum {
  double value = 0, magnitude = 0;
  void add(double x) {
    value += x;
    magnitude += std::abs(x);
  }
};

Sum exact_dot(const float* a, const float* b, int64_t n) {
  Sum sum;
  for (int64_t i = 0; i < n; ++i) sum.add(double{a[i]} * b[i]);
  return sum;
}

TEST_P(KernelTest, DotAndElementwise) {
  for (const int64_t n : {1, 3, 4, 7, 16, 31, 64, 128, 257}) {
    const Floats a = random(n), b = random(n);
    const Sum want = exact_dot(a.data(), b.data(), n);
    EXPECT_NEAR(kernels_->dot(a.data(), b.data(), n), want.value, sum_error * want.magnitude) << n;

    Floats x(a), y(a), z(n + 1, poison), w(n + 1, poison), s(b);
    kernels_->add(x.data(), b.data(), n);
    kernels_->add_scaled(y.data(), b.data(), 0.5f, n);
    kernels_->silu_multiply(a.data(), b.data(), n, z.data());
    kernels_->rms_norm(a.data(), b.data(), 1e-6f, n, w.data());
    kernels_->sigmoid_multiply(a.data(), n, s.data());
    const double rms = std::sqrt(exact_dot(a.data(), a.data(), n).value / n + 1e-6);
    for (int64_t i = 0; i < n; ++i) {
      const double sigmoid = 1 / (1 + std::exp(-double{a[i]}));
      EXPECT_FLOAT_EQ(x[i], a[i] + b[i]);
      EXPECT_NEAR(y[i], a[i] + 0.5 * b[i], 1e-6);
      EXPECT_NEAR(z[i], a[i] * sigmoid * b[i], 1e-6 + 1e-6 * std::abs(a[i] * b[i]));
      EXPECT_NEAR(s[i], b[i] * sigmoid, 1e-6 + 1e-6 * std::abs(b[i]));
      EXPECT_NEAR(w[i], a[i] / rms * b[i], 1e-6 + 2e-6 * std::abs(a[i] / rms * b[i]));
    }
    EXPECT_EQ(z[n], poison) << "wrote past the end";
    EXPECT_EQ(w[n], poison) << "wrote past the end";
  }
}

TEST_P(KernelTest, SiluOfExtremeInputs) {
  const Floats gate = {-1e30f, -200, -88, -20, 0, 20, 88, 200, 1e30f}, one(gate.size(), 1.0f);
  Floats out(gate.size());
  kernels_->silu_multiply(gate.data(), one.data(), static_cast<int64_t>(gate.size()), out.data());
  for (size_t i = 0; i < gate.size(); ++i) {
    EXPECT_NEAR(out[i], gate[i] > 0 ? gate[i] : 0, std::abs(gate[i]) > 80 ? 1e-6 * std::abs(gate[i]) : 1e-6) << gate[i];
  }
}

TEST_P(KernelTest, MatmulTile) {
  for (const int64_t cols : {1, 5, 32, 64, 100, 512}) {
    for (const int64_t rows : {1, 2, 3, 4, 7, 32}) {
      for (int64_t tokens = 1; tokens <= kernels_->tile_tokens; ++tokens) {
        const Floats w = random(rows * cols), x = random(tokens * cols);
        Floats out(tokens * (rows + 1), poison);
        std::vector<const float*> in;
        std::vector<float*> to;
        for (int64_t t = 0; t < tokens; ++t) {
          in.push_back(&x[t * cols]);
          to.push_back(&out[t * (rows + 1)]);
        }
        kernels_->matmul_tile(w.data(), rows, cols, in.data(), tokens, to.data());
        for (int64_t t = 0; t < tokens; ++t) {
          for (int64_t r = 0; r < rows; ++r) {
            const Sum want = exact_dot(&w[r * cols], &x[t * cols], cols);
            ASSERT_NEAR(to[t][r], want.value, sum_error * want.magnitude) << rows << "x" << cols << " token " << t;
          }
          ASSERT_EQ(to[t][rows], poison) << "wrote past the rows";
        }
      }
    }
  }
}

// A random affine-quantised matrix of any kind, with scales of both signs, at odd addresses as files may have them.
struct QuantizedCase {
  WeightMatrix matrix;
  std::vector<std::byte> codes, scales, biases;
};

// Scale number `i` as `dtype`, with a magnitude of about 0.1.
void store_scale(std::byte* at, DType dtype, std::mt19937& generator) {
  const float value = std::normal_distribution<float>(0.0f, 0.1f)(generator);
  const uint16_t half = static_cast<uint16_t>((generator() & 0x8fff) | 0x2000);  // exponents 2^-7 .. 2^-4
  const uint16_t brain = float_to_bf16(value);
  if (dtype == DType::f32) std::memcpy(at, &value, 4);
  if (dtype == DType::bf16) std::memcpy(at, &brain, 2);
  if (dtype == DType::f16) std::memcpy(at, &half, 2);
}

QuantizedCase quantized(int64_t rows, int64_t cols, int bits, int group, DType scale_dtype, std::mt19937& generator) {
  QuantizedCase c;
  c.matrix = {
      .rows = rows, .cols = cols, .dtype = DType::u32, .bits = bits, .group_size = group, .scale_dtype = scale_dtype};
  c.codes.resize(1 + rows * c.matrix.row_bytes());
  for (std::byte& b : c.codes) b = static_cast<std::byte>(generator());
  const int64_t count = rows * cols / group;
  for (std::vector<std::byte>* values : {&c.scales, &c.biases}) {
    values->resize(1 + count * size_of(scale_dtype));
    for (int64_t i = 0; i < count; ++i)
      store_scale(values->data() + 1 + i * size_of(scale_dtype), scale_dtype, generator);
  }
  c.matrix.data = c.codes.data() + 1;
  c.matrix.scales = c.scales.data() + 1;
  c.matrix.biases = c.biases.data() + 1;
  return c;
}

const uint8_t* bytes(const std::byte* data) { return reinterpret_cast<const uint8_t*>(data); }

QuantizedRows rows_of(const WeightMatrix& m) {
  return {.codes = bytes(m.data), .scales = bytes(m.scales), .biases = bytes(m.biases), .rows = m.rows, .cols = m.cols};
}

TEST_P(KernelTest, DequantizeRow) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
        const int64_t cols = 3 * 128;
        const QuantizedCase c = quantized(2, cols, bits, group, dtype, generator_);
        Floats want(cols), got(cols + 1, poison);
        c.matrix.dequantize_row(1, want.data());
        kernels_->dequantize_row({.codes = bytes(c.matrix.data + c.matrix.row_bytes()),
                                  .scales = c.matrix.scales + c.matrix.scale_row_bytes(),
                                  .biases = c.matrix.biases + c.matrix.scale_row_bytes(),
                                  .scale_dtype = dtype,
                                  .bits = bits,
                                  .group_size = group,
                                  .cols = cols},
                                 got.data());
        for (int64_t i = 0; i < cols; ++i) {
          ASSERT_NEAR(got[i], want[i], 1e-6 + 1e-6 * std::abs(want[i]))
              << bits << " bits, group " << group << ", " << i;
        }
        ASSERT_EQ(got[cols], poison);
      }
    }
  }
}

TEST_P(KernelTest, Widen) {
  for (const int64_t n : {1, 16, 37}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      std::vector<std::byte> in(1 + n * size_of(dtype));
      for (int64_t i = 0; i < n; ++i) store_scale(in.data() + 1 + i * size_of(dtype), dtype, generator_);
      Floats out(n + 1, poison);
      kernels_->widen(in.data() + 1, dtype, n, out.data());
      for (int64_t i = 0; i < n; ++i) EXPECT_EQ(out[i], load_as_float(in.data() + 1, dtype, i));
      EXPECT_EQ(out[n], poison);
    }
  }
}

TEST_P(KernelTest, GemvQ4) {
  for (const int64_t cols : {128, 512, 2048, 4096}) {
    if (cols % (8 * kernels_->lanes) != 0) continue;
    const int64_t rows = 5;
    const QuantizedCase c = quantized(rows, cols, 4, 64, DType::bf16, generator_);
    const Floats x = random(cols);
    Floats planar(cols), sums(cols / 64), out(rows + 1, poison), w(cols);
    kernels_->prepare_q4(x.data(), cols, planar.data(), sums.data());
    kernels_->gemv_q4(rows_of(c.matrix), planar.data(), sums.data(), out.data());
    for (int64_t r = 0; r < rows; ++r) {
      c.matrix.dequantize_row(r, w.data());
      const Sum want = exact_dot(w.data(), x.data(), cols);
      // Codes and biases are summed apart, so the terms are larger than those of the dequantised product.
      EXPECT_NEAR(out[r], want.value, 4 * sum_error * want.magnitude) << "row " << r << " of " << cols;
    }
    EXPECT_EQ(out[rows], poison);
  }
}

TEST_P(KernelTest, GemvQ8) {
  for (const int64_t cols : {64, 192, 2048}) {
    const int64_t rows = 3;
    const QuantizedCase c = quantized(rows, cols, 8, 64, DType::bf16, generator_);
    const Floats x = random(cols);
    Floats out(rows + 1, poison), w(cols);
    kernels_->gemv_q8(rows_of(c.matrix), x.data(), out.data());
    for (int64_t r = 0; r < rows; ++r) {
      c.matrix.dequantize_row(r, w.data());
      const Sum want = exact_dot(w.data(), x.data(), cols);
      EXPECT_NEAR(out[r], want.value, sum_error * want.magnitude) << "row " << r << " of " << cols;
    }
    EXPECT_EQ(out[rows], poison);
  }
}

// Activations as SplitKernels take them.
struct SplitCase {
  std::vector<int8_t> high, low;
  Floats scales, sums;
  SplitRows rows;

  SplitCase(const SplitKernels& kernels, const Floats& x, int64_t cols, int64_t run) {
    const int64_t tokens = static_cast<int64_t>(x.size()) / cols, stride = cols + 64;
    high.resize(tokens * stride), low.resize(tokens * stride), scales.resize(tokens), sums.resize(tokens * cols / 64);
    for (int64_t t = 0; t < tokens; ++t) {
      kernels.split(&x[t * cols], cols, run, &high[t * stride], &low[t * stride], &scales[t], &sums[t * cols / 64]);
    }
    rows = {high.data(), low.data(), scales.data(), sums.data(), tokens, cols, stride};
  }
};

TEST_P(KernelTest, SplitKeepsSixteenBits) {
  if (!kernels_->split) GTEST_SKIP() << "no byte products on " << kernels_->isa;
  const int64_t cols = 256;
  for (const int64_t run : {int64_t{32}, kernels_->split->gemv_run}) {
    Floats x = random(cols);
    x[77] = -9.5f;  // the largest: the step is 9.5 / 32639
    const SplitCase split(*kernels_->split, x, cols, run);
    const float scale = split.scales[0];
    EXPECT_NEAR(scale, 9.5f / 32639, 1e-9f);
    for (int64_t i = 0; i < cols; ++i) {
      const int64_t block = i / (2 * run) * (2 * run), at = block + i % 2 * run + (i - block) / 2;
      EXPECT_NEAR(scale * (256 * split.high[at] + split.low[at]), x[i], 0.501f * scale) << i << " in runs of " << run;
    }
    for (int64_t group = 0; group < cols / 64; ++group) {
      double sum = 0;
      for (int i = 0; i < 64; ++i) sum += x[group * 64 + i];
      EXPECT_NEAR(split.sums[group] * scale, sum, 64 * 0.501 * scale);
    }
  }
  const SplitCase zero(*kernels_->split, Floats(cols, 0.0f), cols, 32);
  EXPECT_EQ(zero.scales[0], 0.0f);
  for (const int8_t byte : zero.high) EXPECT_EQ(byte, 0);
}

// Integer sums are exact, so the error is that of the activations, 2^-16 of the row's largest each, and of the float32
// sums over groups. With many tokens the weights may be 16-bit integers too, off by 2^-16 of their row's largest, and the
// products of both low bytes left out, each at most 2^-16 of the largest product.
void expect_split_product(const QuantizedCase& c, const Floats& x, const Floats& out, int64_t stride) {
  const int64_t cols = c.matrix.cols, tokens = static_cast<int64_t>(x.size()) / cols;
  Floats w(cols);
  const auto magnitude = [cols](const float* values) {
    std::pair<double, double> largest_and_sum;
    for (int64_t i = 0; i < cols; ++i) {
      largest_and_sum.first = std::max<double>(largest_and_sum.first, std::abs(values[i]));
      largest_and_sum.second += std::abs(values[i]);
    }
    return largest_and_sum;
  };
  for (int64_t r = 0; r < c.matrix.rows; ++r) {
    c.matrix.dequantize_row(r, w.data());
    const auto [largest_w, sum_w] = magnitude(w.data());
    for (int64_t t = 0; t < tokens; ++t) {
      const auto [largest_x, sum_x] = magnitude(&x[t * cols]);
      const Sum want = exact_dot(w.data(), &x[t * cols], cols);
      const double many = tokens >= 64 ? 0x1p-16 * largest_w * (sum_x + static_cast<double>(cols) * largest_x) : 0;
      ASSERT_NEAR(out[t * stride + r], want.value, 0x1p-16 * largest_x * sum_w + many + 4 * sum_error * want.magnitude)
          << "row " << r << ", token " << t << " of " << tokens << ", " << cols << " columns";
    }
  }
}

TEST_P(KernelTest, SplitGemv) {
  if (!kernels_->split) GTEST_SKIP() << "no byte products on " << kernels_->isa;
  for (const int64_t cols : {128, 256, 512, 1152, 2048}) {
    if (cols % (2 * kernels_->split->gemv_run) != 0) continue;
    for (const int64_t tokens : {1, 2, 3, 4, 7}) {
      const int64_t rows = 5, stride = rows + 1;
      const QuantizedCase c = quantized(rows, cols, 4, 64, DType::bf16, generator_);
      const Floats x = random(tokens * cols);
      Floats out(tokens * stride, poison);
      const SplitCase split(*kernels_->split, x, cols, kernels_->split->gemv_run);
      kernels_->split->gemv(rows_of(c.matrix), split.rows, {}, out.data(), stride);
      expect_split_product(c, x, out, stride);
      for (int64_t t = 0; t < tokens; ++t) EXPECT_EQ(out[t * stride + rows], poison) << "wrote past the rows";
    }
  }
}

TEST_P(KernelTest, SplitGemm) {
  if (!kernels_->split) GTEST_SKIP() << "no byte products on " << kernels_->isa;
  for (const int64_t cols : {64, 192, 512, 640, 2048}) {
    for (const int64_t rows : {16, 32, 48}) {
      for (const int64_t tokens : {1, 5, 6, 16, 23, 70}) {
        const int64_t stride = rows + 1;
        const QuantizedCase c = quantized(rows, cols, 4, 64, DType::bf16, generator_);
        const Floats x = random(tokens * cols);
        const SplitCase split(*kernels_->split, x, cols, 32);
        AlignedVector<uint8_t> scratch(kernels_->split->gemm_scratch(rows, cols) + 1, 0xaa);
        Floats out(tokens * stride, poison);
        kernels_->split->gemm(rows_of(c.matrix), split.rows, {}, scratch.data(), out.data(), stride);
        expect_split_product(c, x, out, stride);
        for (int64_t t = 0; t < tokens; ++t) EXPECT_EQ(out[t * stride + rows], poison) << "wrote past the rows";
        EXPECT_EQ(scratch.back(), 0xaa) << "wrote past the scratch";
      }
    }
  }
}

TEST_P(KernelTest, Convolve) {
  for (const int64_t channels : {1, 16, 37}) {
    for (const int taps : {2, 4}) {
      const int64_t stride = channels + 3;
      const Floats w = random(taps * channels), in = random(taps * stride);
      Floats out(channels + 1, poison);
      kernels_->convolve({w.data(), channels, in.data(), stride}, taps, channels, out.data());
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int j = 0; j < taps; ++j) sum += double{w[j * channels + c]} * in[j * stride + c];
        EXPECT_NEAR(out[c], sum / (1 + std::exp(-sum)), 2e-6 * (1 + std::abs(sum)));
      }
      EXPECT_EQ(out[channels], poison);
    }
  }
}

struct DeltaShape {
  int dk, dv;
  int64_t tokens;
};

TEST_P(KernelTest, DeltaRule) {
  for (const auto& [dk, dv, tokens] :
       {DeltaShape{128, 128, 9}, {128, 128, 1}, {16, 128, 8}, {16, 48, 9}, {16, 48, 2}, {5, 7, 9}, {5, 7, 1}}) {
    const int64_t heads = 2;
    Floats q = random(tokens * dk, 0.1f), k = random(tokens * dk, 0.1f), v = random(tokens * dk + tokens * dv);
    const int64_t stride = std::max(dk, dv);
    q.resize(tokens * stride), k.resize(tokens * stride), v.resize(tokens * stride);
    Floats decay = random(tokens * heads, 0.1f), beta = random(tokens * heads, 0.1f), out(tokens * dv);
    for (float& d : decay) d = 0.9f + d / 4;
    for (float& b : beta) b = 0.7f + b;
    const Floats start = random(dk * dv);
    Floats state = start;
    for (int column = 0; column < dv; column += 64) {
      kernels_->delta_rule({.state = state.data(),
                            .q = q.data(),
                            .k = k.data(),
                            .v = v.data(),
                            .decay = decay.data(),
                            .beta = beta.data(),
                            .out = out.data(),
                            .stride = stride,
                            .gate_stride = heads,
                            .out_stride = dv,
                            .tokens = tokens,
                            .key_dim = dk,
                            .value_dim = dv},
                           column, std::min(64, dv - column));
    }
    std::vector<double> s(start.begin(), start.end());
    for (int64_t t = 0; t < tokens; ++t) {
      for (int j = 0; j < dv; ++j) {
        double recalled = 0, read = 0;
        for (int i = 0; i < dk; ++i) recalled += (s[i * dv + j] *= decay[t * heads]) * k[t * stride + i];
        for (int i = 0; i < dk; ++i) {
          s[i * dv + j] += k[t * stride + i] * beta[t * heads] * (v[t * stride + j] - recalled);
          read += s[i * dv + j] * q[t * stride + i];
        }
        ASSERT_NEAR(out[t * dv + j], read, 1e-5) << dk << "x" << dv << " token " << t << " column " << j;
      }
    }
    for (int i = 0; i < dk * dv; ++i) ASSERT_NEAR(state[i], s[i], 1e-5);
  }
}

// 200,000 steps with a decay near 1 and keys that hardly differ: the state stays bounded, and near that of float64.
TEST_P(KernelTest, NM_01_DeltaRuleOverALongContext) {
  constexpr int dk = 32, dv = 16;
  constexpr int64_t tokens = 1000, chunks = 200;
  Floats state(dk * dv), q(tokens * dk), k(tokens * dk), v(tokens * dk), decay(tokens), beta(tokens), out(tokens * dv);
  const Floats direction = random(dk);
  std::vector<double> exact(dk * dv);
  double largest = 0, off = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const Floats noise = random(tokens * dk, 0.05f), values = random(tokens * dk);
    for (int64_t t = 0; t < tokens; ++t) {
      double norm = 0;
      for (int i = 0; i < dk; ++i) norm += std::pow(k[t * dk + i] = direction[i] + noise[t * dk + i], 2);
      for (int i = 0; i < dk; ++i) q[t * dk + i] = k[t * dk + i] /= static_cast<float>(std::sqrt(norm));
      decay[t] = 0.99995f;
      beta[t] = 0.5f;
    }
    v = values;
    kernels_->delta_rule({.state = state.data(),
                          .q = q.data(),
                          .k = k.data(),
                          .v = v.data(),
                          .decay = decay.data(),
                          .beta = beta.data(),
                          .out = out.data(),
                          .stride = dk,
                          .gate_stride = 1,
                          .out_stride = dv,
                          .tokens = tokens,
                          .key_dim = dk,
                          .value_dim = dv},
                         0, dv);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int j = 0; j < dv; ++j) {
        double recalled = 0;
        for (int i = 0; i < dk; ++i) recalled += (exact[i * dv + j] *= decay[t]) * k[t * dk + i];
        const double update = beta[t] * (v[t * dk + j] - recalled);
        for (int i = 0; i < dk; ++i) exact[i * dv + j] += k[t * dk + i] * update;
      }
    }
    for (int i = 0; i < dk * dv; ++i) {
      ASSERT_TRUE(std::isfinite(state[i]));
      largest = std::max(largest, std::abs(exact[i]));
      off = std::max(off, std::abs(state[i] - exact[i]));
    }
  }
  // Float32 rounds each of the steps that a direction remembers, about 1 / (1 - decay), by 2^-24: as a random walk 1e-5.
  EXPECT_LE(off, 1e-4 * largest) << "largest " << largest << ", off " << off;
}

// Keys and values of one block, f32 or bf16, as Kernels::attend wants them.
struct AttentionBlock {
  std::vector<std::byte> keys, values;

  AttentionBlock(DType dtype, const Floats& k, const Floats& v, int dim) {
    const int64_t count = static_cast<int64_t>(v.size()) / dim, size = static_cast<int64_t>(size_of(dtype));
    keys.resize((count + attention_part - 1) / attention_part * attention_part * dim * size);
    values.resize(count * dim * size);
    const auto put = [&](std::vector<std::byte>& to, int64_t at, float x) {
      const uint16_t half = float_to_bf16(x);
      std::memcpy(&to[at * size], dtype == DType::bf16 ? static_cast<const void*>(&half) : &x, size);
    };
    for (int64_t i = 0; i < count * dim; ++i) {
      const int64_t key = i / dim, d = i % dim;
      put(keys, (key / key_group * dim + d) * key_group + key % key_group, k[i]);
      put(values, i, v[i]);
    }
  }
};

// bf16 or float32 keys and values, against the same numbers in double.
void attend_case(const Kernels& kernels, DType dtype, int64_t num_queries, int dim, std::mt19937& generator) {
  const int64_t total_keys = 150, block = 96;
  const auto random = [&](size_t n, float scale) {
    Floats values(n);
    for (float& v : values) v = std::normal_distribution<float>(0.0f, scale)(generator);
    return values;
  };
  Floats keys = random(total_keys * dim, 1), values = random(total_keys * dim, 1);
  const Floats q = random(num_queries * dim, 0.3f);
  for (Floats* rounded : {&keys, &values}) {
    for (float& x : *rounded) {
      const uint16_t half = float_to_bf16(x);
      if (dtype == DType::bf16) x = load_as_float(&half, dtype, 0);
    }
  }
  Floats sums(num_queries * dim, 0.0f), scores(num_queries * attention_part);
  std::vector<AttentionQuery> queries;
  for (int64_t i = 0; i < num_queries; ++i) queries.push_back({&q[i * dim], &sums[i * dim], -INFINITY, 0, 0});
  const auto visible = [&](int64_t i) { return 1 + (i * 13 + 120) % total_keys; };
  for (int64_t first = 0; first < total_keys; first += block) {
    const int64_t count = std::min<int64_t>(block, total_keys - first);
    for (int64_t i = 0; i < num_queries; ++i) queries[i].visible = visible(i) - first;
    const auto part_of = [&](const Floats& all) {
      return Floats(all.begin() + first * dim, all.begin() + (first + count) * dim);
    };
    const AttentionBlock data(dtype, part_of(keys), part_of(values), dim);
    kernels.attend(data.keys.data(), data.values.data(), dtype, count, dim, queries.data(), num_queries, scores.data());
  }
  for (int64_t i = 0; i < num_queries; ++i) {
    std::vector<double> want(dim);
    double total = 0;
    for (int64_t key = 0; key < visible(i); ++key) {
      const double p = std::exp(exact_dot(&q[i * dim], &keys[key * dim], dim).value);
      total += p;
      for (int d = 0; d < dim; ++d) want[d] += p * values[key * dim + d];
    }
    for (int d = 0; d < dim; ++d) ASSERT_NEAR(sums[i * dim + d] / queries[i].total, want[d] / total, 4e-6) << i;
  }
}

TEST_P(KernelTest, Attend) {
  for (const int64_t num_queries : {1, 3, 8, 19}) {
    for (const int dim : {64, 20}) {
      attend_case(*kernels_, DType::f32, num_queries, dim, generator_);
      attend_case(*kernels_, DType::bf16, num_queries, dim, generator_);
    }
  }
}

std::vector<const char*> sets_of_this_machine() {
  std::vector<const char*> sets;
  for (const char* isa : isa_names) {
    if (select_kernels(isa)) sets.push_back(isa);
  }
  return sets;
}

INSTANTIATE_TEST_SUITE_P(All, KernelTest, testing::ValuesIn(sets_of_this_machine()),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(SelectKernels, UnknownNameGivesNone) { EXPECT_EQ(select_kernels("sse9"), nullptr); }

}  // namespace
}  // namespace lily::cpu
