// The kernels of Gated DeltaNet on every device against plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/compare.h"
#include "support/kernel_run.h"

namespace lily {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
constexpr size_t dim = kernels::linear_dim, history_rows = kernels::conv_taps - 1;
constexpr double eps = 1e-6;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }

struct Layer {
  size_t key_heads, value_heads;
  Floats conv, a_log, dt_bias, norm;

  Layer(size_t key_head_count, size_t value_head_count) : key_heads(key_head_count), value_heads(value_head_count) {
    conv = test::normal_numbers(kernels::conv_taps * channels(), 1, 0.5f);
    a_log = test::normal_numbers(value_heads, 2);
    dt_bias = test::normal_numbers(value_heads, 3, 2);
    norm = test::normal_numbers(dim, 4);
  }
  size_t channels() const { return (2 * key_heads + value_heads) * dim; }
  size_t values() const { return value_heads * dim; }
  size_t state_size() const { return values() * dim; }
  size_t stride() const { return channels() + values() + 2 * value_heads; }  // q | k | v | z | b | a
  size_t chunk_stride() const { return channels() + values() + 32; }         // q | k | v | z | what others read
  kernels::DeltaArgs args(size_t n, size_t row_stride, size_t gate_stride) const {
    return {static_cast<unsigned>(n),          static_cast<unsigned>(key_heads),   static_cast<unsigned>(value_heads),
            static_cast<unsigned>(row_stride), static_cast<unsigned>(gate_stride), static_cast<float>(eps)};
  }
};

struct State {
  Floats history, recurrent;
  static State of(const Layer& layer, unsigned seed) {
    return {test::normal_numbers(history_rows * layer.channels(), seed),
            test::normal_numbers(layer.state_size(), seed + 1, 0.3f)};
  }
};

// What the plain loops have of n tokens from x [n, stride]: everything between the projections and the output matrix.
struct Plain {
  Doubles qkv, decay, beta;  // [n, channels] q and k normalised, q scaled; [n, value_heads] twice
  Doubles o, y;              // [n, values]
  Doubles history, state;

  // `round`: q, k and v as bf16, as a chunk keeps them.
  Plain(const Layer& layer, const Floats& x, const State& before, size_t n, bool round) {
    convolve(layer, x, before, n);
    if (round) {
      for (double& v : qkv) v = bf16_to_float(float_to_bf16(static_cast<float>(v)));
    }
    gates(layer, x, n);
    state.assign(before.recurrent.begin(), before.recurrent.end());
    for (size_t t = 0; t < n; ++t) {
      for (size_t head = 0; head < layer.value_heads; ++head) recur(layer, t, head);
    }
    for (size_t t = 0; t < n; ++t) {
      for (size_t head = 0; head < layer.value_heads; ++head) {
        const double* out = &o[(t * layer.value_heads + head) * dim];
        const float* z = &x[t * layer.stride() + layer.channels() + head * dim];
        double sum = 0;
        for (size_t i = 0; i < dim; ++i) sum += out[i] * out[i];
        for (size_t i = 0; i < dim; ++i) y.push_back(out[i] / std::sqrt(sum / dim + eps) * layer.norm[i] * silu(z[i]));
      }
    }
  }

 private:
  void convolve(const Layer& layer, const Floats& x, const State& before, size_t n) {
    const size_t channels = layer.channels();
    Doubles input(before.history.begin(), before.history.end());
    for (size_t t = 0; t < n; ++t) {
      input.insert(input.end(), &x[t * layer.stride()], &x[t * layer.stride()] + channels);
    }
    history.assign(input.end() - static_cast<std::ptrdiff_t>(history_rows * channels), input.end());
    for (size_t t = 0; t < n; ++t) {
      for (size_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (size_t j = 0; j < kernels::conv_taps; ++j) {
          sum += layer.conv[j * channels + c] * input[(t + j) * channels + c];
        }
        qkv.push_back(silu(sum));
      }
      for (size_t head = 0; head < 2 * layer.key_heads; ++head) {
        double* v = &qkv[t * channels + head * dim];
        double sum = 0;
        for (size_t i = 0; i < dim; ++i) sum += v[i] * v[i];
        const double scale = head < layer.key_heads ? 1 / std::sqrt(double{dim}) : 1;
        for (size_t i = 0; i < dim; ++i) v[i] *= scale / std::sqrt(sum + 1e-6);
      }
    }
  }

  void gates(const Layer& layer, const Floats& x, size_t n) {
    for (size_t t = 0; t < n; ++t) {
      const float* b = &x[t * layer.stride() + layer.channels() + layer.values()];
      const float* a = b + layer.value_heads;
      for (size_t head = 0; head < layer.value_heads; ++head) {
        beta.push_back(sigmoid(b[head]));
        const double rate = std::exp(double{layer.a_log[head]});
        decay.push_back(std::exp(-rate * std::log1p(std::exp(double{a[head]} + layer.dt_bias[head]))));
      }
    }
  }

  void recur(const Layer& layer, size_t t, size_t head) {
    const double* q = &qkv[t * layer.channels() + head / (layer.value_heads / layer.key_heads) * dim];
    const double *k = q + layer.key_heads * dim, *v = &qkv[t * layer.channels() + (2 * layer.key_heads + head) * dim];
    for (size_t j = 0; j < dim; ++j) {
      double *row = &state[(head * dim + j) * dim], recalled = 0, out = 0;
      for (size_t i = 0; i < dim; ++i) recalled += (row[i] *= decay[t * layer.value_heads + head]) * k[i];
      const double update = beta[t * layer.value_heads + head] * (v[j] - recalled);
      for (size_t i = 0; i < dim; ++i) out += (row[i] += update * k[i]) * q[i];
      o.push_back(out);
    }
  }
};

Floats floats(const Doubles& v) { return Floats(v.begin(), v.end()); }
Floats part(const Floats& v, size_t first, size_t count) {
  return Floats(v.begin() + static_cast<std::ptrdiff_t>(first), v.begin() + static_cast<std::ptrdiff_t>(first + count));
}

class DeltaKernelTest : public test::DeviceTest {
 protected:
  struct Results {
    Floats y;
    State state;
  };
  // Everything a chunk's kernels leave.
  struct Chunk : Results {
    Floats qkv, decay, beta, o;
  };

  Results step(const Layer& layer, const Floats& x, const State& before) {
    const KernelRun run = std::move(kernel("delta_step")
                                        .in(x)
                                        .in(layer.conv)
                                        .in(layer.a_log)
                                        .in(layer.dt_bias)
                                        .in(layer.norm)
                                        .in(before.history)
                                        .out<float>(before.history.size())
                                        .in(before.recurrent)
                                        .out<float>(before.recurrent.size())
                                        .out<float>(layer.values())
                                        .args(layer.args(1, layer.stride(), 0))
                                        .run(static_cast<uint32_t>(layer.value_heads)));
    return {run.floats(9), {run.floats(6), run.floats(8)}};
  }

  Chunk chunk(const Layer& layer, const Floats& x, const State& before) {
    const size_t n = x.size() / layer.stride(), channels = layer.channels(), heads = layer.value_heads;
    const size_t stride = layer.chunk_stride(), gate_stride = 2 * heads + 3;
    Floats rows(n * stride, NAN), gates(n * gate_stride, NAN);
    for (size_t t = 0; t < n; ++t) {
      const float* row = &x[t * layer.stride()];
      std::copy_n(row, channels + layer.values(), &rows[t * stride]);
      std::copy_n(row + channels + layer.values(), 2 * heads, &gates[t * gate_stride]);
    }
    const kernels::DeltaArgs args = layer.args(n, stride, gate_stride);
    const uint32_t blocks = static_cast<uint32_t>(n + 15) / 16, head_count = static_cast<uint32_t>(heads);
    const KernelRun prepared = std::move(kernel("delta_prepare")
                                             .in(test::as_bf16(rows))
                                             .in(gates)
                                             .in(layer.conv)
                                             .in(layer.a_log)
                                             .in(layer.dt_bias)
                                             .in(before.history)
                                             .out<float>(before.history.size())
                                             .out<uint16_t>(n * channels)
                                             .out<float>(n * heads)
                                             .out<float>(n * heads)
                                             .args(args)
                                             .run(static_cast<uint32_t>(channels / dim), blocks));
    Chunk result;
    result.qkv = prepared.bf16(7);
    result.decay = prepared.floats(8);
    result.beta = prepared.floats(9);
    result.state.history = prepared.floats(6);
    scan(layer, before, args, result);
    result.y = kernel("delta_norm")
                   .in(result.o)
                   .in(test::as_bf16(rows))
                   .in(layer.norm)
                   .out<uint16_t>(n * layer.values())
                   .args(args)
                   .run(head_count, blocks)
                   .bf16(3);
    return result;
  }

  void scan(const Layer& layer, const State& before, const kernels::DeltaArgs& args, Chunk& chunk) {
    const KernelRun run = std::move(kernel("delta_scan")
                                        .in(test::as_bf16(chunk.qkv))
                                        .in(chunk.decay)
                                        .in(chunk.beta)
                                        .in(before.recurrent)
                                        .out<float>(before.recurrent.size())
                                        .out<float>(args.n * layer.values())
                                        .args(args)
                                        .run(dim / 32, static_cast<uint32_t>(layer.value_heads)));
    chunk.o = run.floats(5);
    chunk.state.recurrent = run.floats(4);
  }

  using KernelRun = test::KernelRun;
};

#define EXPECT_CLOSE(got, want, tolerance)                                        \
  do {                                                                            \
    const test::Difference d = test::difference(got, want);                       \
    EXPECT_TRUE(d.finite&& d.relative < (tolerance)) << #got << ": " << d.text(); \
  } while (false)

// A result in float32 is a sum of a few hundred terms, each off by 2^-24 or so: 1e-6 in all, and fast exponentials and
// reciprocal roots of a device add as much. An error in the state lives on, but decays.
constexpr double float_tolerance = 5e-6;
// One rounding to bf16.
constexpr double bf16_tolerance = 0x1p-8;
// Where a value lies half way between two numbers of bf16, kernel and loops may round it to either side: 2^-8 off, once among
// hundreds of values or more.
constexpr double rounding_tolerance = 5e-4;

TEST_P(DeltaKernelTest, StepsMatchPlainLoops) {
  for (const auto& [key_heads, value_heads] : {std::pair{1, 1}, {2, 2}, {2, 4}, {1, 3}, {16, 32}}) {
    SCOPED_TRACE(testing::Message() << key_heads << " and " << value_heads << " heads");
    const Layer layer(key_heads, value_heads);
    const size_t n = value_heads > 4 ? 2 : 6;
    const Floats x = test::normal_numbers(n * layer.stride(), 7);
    const State start = State::of(layer, 8);
    State state = start;
    Floats y;
    for (size_t t = 0; t < n; ++t) {
      Results results = step(layer, part(x, t * layer.stride(), layer.stride()), state);
      y.insert(y.end(), results.y.begin(), results.y.end());
      state = std::move(results.state);
    }
    const Plain want(layer, x, start, n, false);
    EXPECT_CLOSE(y, floats(want.y), float_tolerance);
    EXPECT_CLOSE(state.recurrent, floats(want.state), float_tolerance);
    EXPECT_EQ(state.history, floats(want.history));
  }
}

TEST_P(DeltaKernelTest, ChunksMatchPlainLoops) {
  struct Case {
    int key_heads, value_heads;
    size_t n;
  };
  for (const Case& c : {Case{1, 1, 1},
                        {1, 1, 2},
                        {1, 2, 3},
                        {2, 4, 5},
                        {2, 4, 16},
                        {1, 3, 17},
                        {2, 4, 40},
                        {1, 1, 33},
                        {16, 32, 2},
                        {16, 32, 5}}) {
    SCOPED_TRACE(testing::Message() << c.key_heads << " and " << c.value_heads << " heads, " << c.n << " tokens");
    const Layer layer(c.key_heads, c.value_heads);
    const Floats x = test::normal_numbers(c.n * layer.stride(), 17);
    const State start = State::of(layer, 18);
    const Chunk got = chunk(layer, x, start);
    const Plain want(layer, x, start, c.n, true);
    EXPECT_CLOSE(got.qkv, floats(want.qkv), rounding_tolerance);
    EXPECT_CLOSE(got.decay, floats(want.decay), 1e-6);
    EXPECT_CLOSE(got.beta, floats(want.beta), 1e-6);
    EXPECT_EQ(got.state.history, floats(want.history));
    EXPECT_CLOSE(got.o, floats(want.o), rounding_tolerance);
    EXPECT_CLOSE(got.state.recurrent, floats(want.state), rounding_tolerance);
    EXPECT_CLOSE(got.y, floats(want.y), bf16_tolerance);
  }
}

// The recurrence alone, on inputs that both sides have exactly, is exact to float32.
TEST_P(DeltaKernelTest, ScansMatchPlainLoops) {
  const Layer layer(2, 4);
  for (const size_t n : {1u, 4u, 15u, 16u, 17u, 32u, 49u}) {
    SCOPED_TRACE(testing::Message() << n << " tokens");
    const State start = State::of(layer, 28);
    Plain want(layer, test::normal_numbers(n * layer.stride(), 27), start, n, true);
    Chunk got;
    got.qkv = floats(want.qkv);
    got.decay = floats(want.decay);
    got.beta = floats(want.beta);
    scan(layer, start, layer.args(n, 0, 0), got);
    EXPECT_CLOSE(got.o, floats(want.o), float_tolerance);
    EXPECT_CLOSE(got.state.recurrent, floats(want.state), float_tolerance);
  }
}

TEST_P(DeltaKernelTest, ChunksInPartsMatchTheWhole) {
  const Layer layer(1, 2);
  const size_t n = 40;
  const Floats x = test::normal_numbers(n * layer.stride(), 37);
  const State start = State::of(layer, 38);
  const Chunk whole = chunk(layer, x, start);
  for (const size_t cut : {1u, 2u, 3u, 16u, 21u}) {
    SCOPED_TRACE(testing::Message() << "cut after " << cut << " tokens");
    const Chunk first = chunk(layer, part(x, 0, cut * layer.stride()), start);
    const Chunk second = chunk(layer, part(x, cut * layer.stride(), (n - cut) * layer.stride()), first.state);
    EXPECT_EQ(second.state.history, whole.state.history);
    EXPECT_EQ(second.qkv, part(whole.qkv, cut * layer.channels(), (n - cut) * layer.channels()));
    EXPECT_CLOSE(first.o, part(whole.o, 0, cut * layer.values()), float_tolerance);
    EXPECT_CLOSE(second.o, part(whole.o, cut * layer.values(), (n - cut) * layer.values()), float_tolerance);
    EXPECT_CLOSE(second.state.recurrent, whole.state.recurrent, float_tolerance);
  }
}

// A step after a chunk gives what the longer chunk gives, but for the chunk's roundings to bf16.
TEST_P(DeltaKernelTest, StepsContinueChunks) {
  const Layer layer(2, 4);
  const size_t n = 18;
  const Floats x = test::normal_numbers((n + 1) * layer.stride(), 47);
  const State start = State::of(layer, 48);
  const Chunk whole = chunk(layer, x, start);
  const Chunk before = chunk(layer, part(x, 0, n * layer.stride()), start);
  const Results last = step(layer, part(x, n * layer.stride(), layer.stride()), before.state);
  EXPECT_EQ(last.state.history, whole.state.history);
  // The update's three factors are each rounded in the chunk.
  EXPECT_CLOSE(last.state.recurrent, whole.state.recurrent, 2 * bf16_tolerance);
  EXPECT_CLOSE(last.y, part(whole.y, n * layer.values(), layer.values()), 4 * bf16_tolerance);
}

// Gates at the ends of their range: nothing forgotten, all forgotten, nothing written.
TEST_P(DeltaKernelTest, ExtremeGates) {
  Layer layer(1, 4);
  layer.a_log = {-8, 3, 0, 2};
  layer.dt_bias = {-12, 30, 0, -90};
  Floats x = test::normal_numbers(layer.stride(), 57);
  float* b = &x[layer.channels() + layer.values()];
  const Floats logits = {100, -100, 60, -60};
  std::copy(logits.begin(), logits.end(), b);
  const State start = State::of(layer, 58);
  const Plain want(layer, x, start, 1, false);
  const Results got = step(layer, x, start);
  EXPECT_CLOSE(got.state.recurrent, floats(want.state), float_tolerance);
  EXPECT_CLOSE(got.y, floats(want.y), float_tolerance);
  const Chunk chunked = chunk(layer, x, start);
  EXPECT_CLOSE(chunked.decay, floats(want.decay), 1e-6);
  EXPECT_CLOSE(chunked.beta, floats(want.beta), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeltaKernelTest, testing::ValuesIn(gpu::device_names()));

}  // namespace
}  // namespace lily
