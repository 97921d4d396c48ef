// What each kernel of the GPU engine takes at the shapes of Qwen3.6-35B-A3B: microseconds a dispatch, GB/s and TFLOP/s.
//
//   gpu_kernels [DEVICE] [PART OF A KERNEL'S NAME]
//
// Many dispatches are recorded behind each other and timed together. They take turns over copies of the data, more than a GPU's
// caches hold, as layers do. The bytes counted are those that must move once.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/gpu/devices.h"
#include "backend/gpu/tuning.h"
#include "base/dtype.h"
#include "kernels/catalog.h"

namespace lily {
namespace {

using gpu::BufferView;

constexpr uint32_t hidden = 2048, experts = 256, top_k = 8, slots = 9, width = 512, group_size = 64, vocab = 248320;
constexpr uint32_t cores = 132;  // that rows are dealt to: those of an H200
constexpr uint32_t heads = 16, kv_heads = 2, attention_stride = 9216, kv_layers = 10;
constexpr uint32_t key_heads = 16, value_heads = 32, channels = 8192, delta_stride = 12352;

struct Input {
  enum Kind { codes, f32, bf16, scales, words, choices } kind;
  size_t count;
  std::vector<uint32_t> data;  // of words; of choices, for the first copy
};

struct Case {
  std::string kernel, shape;
  std::vector<Input> buffers;
  std::vector<std::byte> args;
  std::array<uint32_t, 3> groups;
  double bytes, operations;
};

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

uint32_t up(uint32_t a, uint32_t b) { return (a + b - 1) / b; }
Input floats(size_t count) { return {Input::f32, count, {}}; }
Input halves(size_t count) { return {Input::bf16, count, {}}; }
Input words(std::vector<uint32_t> data) {
  const size_t count = data.size();
  return {Input::words, count, std::move(data)};
}
Input choices(const std::vector<uint32_t>& data) { return {Input::choices, data.size(), data}; }
Input words(size_t count) { return words(std::vector<uint32_t>(count, 0)); }

size_t bytes_of(const Input& input) {
  return input.count * (input.kind == Input::bf16 || input.kind == Input::scales ? 2 : 4);
}

// Codes, scales and biases.
void add_matrix(std::vector<Input>& to, size_t rows, size_t cols, uint32_t bits) {
  to.push_back({Input::codes, rows * cols * bits / 32, {}});
  for (int i = 0; i < 2; ++i) to.push_back({Input::scales, rows * cols / group_size, {}});
}
double matrix_bytes(double rows, double cols, double bits) { return rows * cols * (bits / 8 + 4.0 / group_size); }

struct Shape {
  uint32_t rows, cols, bits;
};

void add_gemv(std::vector<Case>& cases, uint32_t n) {
  const std::string tokens = "n " + std::to_string(n);
  for (const Shape s :
       {Shape{delta_stride, hidden, 4}, {attention_stride, hidden, 4}, {257, hidden, 8}, {vocab, hidden, 4}}) {
    Case c{"norm_gemv_" + std::to_string(s.bits),
           tokens + ", " + std::to_string(s.rows) + " x " + std::to_string(s.cols)};
    c.buffers = {floats(size_t{n} * s.cols), floats(s.cols)};
    add_matrix(c.buffers, s.rows, s.cols, s.bits);
    c.buffers.push_back(floats(size_t{n} * s.rows));
    const gpu::RowCut cut = gpu::cut_rows(s.rows, cores);
    c.args = bytes_of(kernels::GemvArgs{s.rows, s.cols, group_size, 1e-6f, cut.simd_rows, cut.passes});
    c.groups = {cut.groups, n, 1};
    c.bytes = matrix_bytes(s.rows, s.cols, s.bits);
    c.operations = 2.0 * n * s.rows * s.cols;
    cases.push_back(std::move(c));
  }
  Case c{"gemv_add_4", tokens + ", 2048 x 4096"};
  c.buffers = {floats(size_t{n} * 4096)};
  add_matrix(c.buffers, hidden, 4096, 4);
  c.buffers.push_back(floats(size_t{n} * hidden));
  const gpu::RowCut cut = gpu::cut_rows(hidden, cores);
  c.args = bytes_of(kernels::GemvArgs{hidden, 4096, group_size, 1e-6f, cut.simd_rows, cut.passes});
  c.groups = {cut.groups, n, 1};
  c.bytes = matrix_bytes(hidden, 4096, 4);
  c.operations = 2.0 * n * hidden * 4096;
  cases.push_back(std::move(c));
}

void add_gemm(std::vector<Case>& cases, uint32_t n) {
  const std::string tokens = "n " + std::to_string(n);
  for (const uint32_t tile : {16u, 32u, 64u}) {
    for (const Shape s :
         {Shape{delta_stride, hidden, 4}, {attention_stride, hidden, 4}, {hidden, 4096, 4}, {257, hidden, 8}}) {
      Case c{"gemm_" + std::to_string(tile) + "_" + std::to_string(s.bits),
             tokens + ", " + std::to_string(s.rows) + " x " + std::to_string(s.cols)};
      c.buffers = {halves(size_t{n} * s.cols)};
      add_matrix(c.buffers, s.rows, s.cols, s.bits);
      const bool adds = s.cols == 4096;
      c.buffers.push_back(adds ? floats(size_t{n} * s.rows) : halves(size_t{n} * s.rows));
      c.args = bytes_of(kernels::GemmArgs{n, s.rows, 0, s.cols, group_size, s.rows,
                                          adds ? kernels::gemm_add_f32 : kernels::gemm_store_bf16});
      c.groups = {up(s.rows, 64), up(n, tile), 1};
      c.bytes = matrix_bytes(s.rows, s.cols, s.bits) + 2.0 * n * (s.cols + s.rows * (adds ? 4 : 1));
      c.operations = 2.0 * n * s.rows * s.cols;
      cases.push_back(std::move(c));
    }
  }
  cases.push_back({"rms_norm",
                   tokens,
                   {floats(size_t{n} * hidden), floats(hidden), halves(size_t{n} * hidden)},
                   bytes_of(kernels::NormArgs{hidden, 1e-6f}),
                   {n, 1, 1},
                   6.0 * n * hidden,
                   4.0 * n * hidden});
}

// What route and the grouping kernels leave for random choices.
struct Grouping {
  std::vector<uint32_t> choices, counts, starts, pairs, places;
  std::vector<uint32_t> blocks(uint32_t tile) const {
    std::vector<uint32_t> out = {0};
    for (uint32_t g = 0; g < counts.size(); ++g) {
      for (uint32_t row = starts[g]; row < starts[g + 1]; row += tile) out.insert(out.end(), {g, row});
    }
    out[0] = static_cast<uint32_t>(out.size() / 2);
    out.resize(1 + 2 * most_blocks(tile));
    return out;
  }
  uint32_t most_blocks(uint32_t tile) const { return static_cast<uint32_t>(choices.size()) / tile + experts + 1; }
  double used() const {
    double groups = 0;
    for (const uint32_t count : counts) groups += count > 0;
    return groups;
  }
};

Grouping group_randomly(uint32_t n) {
  std::mt19937 random(n);
  Grouping g;
  g.counts.resize(experts + 1);
  for (uint32_t t = 0; t < n; ++t) {
    std::vector<uint32_t> mine;
    while (mine.size() < top_k) {
      const uint32_t e = random() % experts;
      if (std::find(mine.begin(), mine.end(), e) == mine.end()) mine.push_back(e);
    }
    mine.push_back(experts);
    for (const uint32_t e : mine) ++g.counts[e];
    g.choices.insert(g.choices.end(), mine.begin(), mine.end());
  }
  g.starts = {0};
  for (const uint32_t count : g.counts) g.starts.push_back(g.starts.back() + count);
  g.pairs.resize(g.choices.size());
  g.places.resize(g.choices.size());
  std::vector<uint32_t> next(g.starts.begin(), g.starts.end() - 1);
  for (uint32_t pair = 0; pair < g.choices.size(); ++pair) {
    g.places[pair] = next[g.choices[pair]]++;
    g.pairs[g.places[pair]] = pair;
  }
  return g;
}

void add_expert_step(std::vector<Case>& cases, uint32_t n) {
  const Grouping g = group_randomly(n);
  const std::string tokens = "n " + std::to_string(n);
  const size_t pairs = size_t{n} * slots, all = experts + 1;
  const double gate_up = 2 * matrix_bytes(width, hidden, 4), down = matrix_bytes(hidden, width, 4);
  const kernels::MoeArgs moe{n, hidden, experts, top_k, 1, width, group_size, group_size, experts + 1, 1e-6f};
  cases.push_back({"route",
                   tokens,
                   {floats(size_t{n} * all), words(pairs), floats(pairs)},
                   bytes_of(moe),
                   {n, 1, 1},
                   4.0 * n * all,
                   0});
  Case c{"experts_gate_up_4", tokens, {floats(size_t{n} * hidden), floats(hidden), floats(size_t{n} * all)}};
  for (int i = 0; i < 2; ++i) add_matrix(c.buffers, all * width, hidden, 4);
  c.buffers.push_back(floats(pairs * width));
  c.args = bytes_of(moe);
  c.groups = {width / 16, slots, n};
  c.bytes = gate_up * g.used();
  c.operations = 4.0 * pairs * hidden * width;
  cases.push_back(std::move(c));
  Case d{"experts_down_4", tokens, {floats(pairs * width), floats(size_t{n} * all)}};
  add_matrix(d.buffers, all * hidden, width, 4);
  d.buffers.push_back(floats(size_t{n} * hidden));
  d.args = bytes_of(moe);
  d.groups = {hidden / 16, n, 1};
  d.bytes = down * g.used();
  d.operations = 2.0 * pairs * hidden * width;
  cases.push_back(std::move(d));
}

void add_grouping(std::vector<Case>& cases, const Grouping& g, uint32_t n, const kernels::GroupArgs& args) {
  const std::string tokens = "n " + std::to_string(n);
  const size_t pairs = size_t{n} * slots;
  const uint32_t groups = args.groups, tile = args.tile_rows;
  cases.push_back(
      {"group_count", tokens, {words(g.choices), words(groups)}, bytes_of(args), {groups, 1, 1}, 4.0 * pairs, 0});
  cases.push_back({"group_map",
                   tokens,
                   {words(g.counts), words(groups + 1), words(g.blocks(tile).size())},
                   bytes_of(args),
                   {1, 1, 1},
                   8.0 * groups,
                   0});
  cases.push_back({"group_scatter",
                   tokens,
                   {words(g.choices), words(g.starts), words(pairs), words(pairs)},
                   bytes_of(args),
                   {groups, 1, 1},
                   12.0 * pairs,
                   0});
}

void add_expert_groups(std::vector<Case>& cases, uint32_t n) {
  const Grouping g = group_randomly(n);
  const std::string tokens = "n " + std::to_string(n);
  const size_t pairs = size_t{n} * slots, all = experts + 1;
  const double gate_up = 2 * matrix_bytes(width, hidden, 4), down = matrix_bytes(hidden, width, 4);
  const uint32_t groups = experts + 1;
  for (const uint32_t tile : {16u, 32u, 64u}) {
    const kernels::GroupArgs args{n, slots, groups, tile};
    const std::string name = std::to_string(tile) + "_4";
    if (tile == 64) add_grouping(cases, g, n, args);
    Case c{"moe_gate_up_" + name,
           tokens,
           {halves(size_t{n} * hidden), words(g.pairs), words(g.starts), words(g.blocks(tile))}};
    for (int i = 0; i < 2; ++i) add_matrix(c.buffers, all * width, hidden, 4);
    c.buffers.push_back(halves(pairs * width));
    c.args = bytes_of(kernels::GroupedGemmArgs{width, hidden, group_size, slots});
    c.groups = {width / 32, g.most_blocks(tile), 1};
    c.bytes = gate_up * g.used() + 2.0 * pairs * (hidden + width);
    c.operations = 4.0 * pairs * hidden * width;
    cases.push_back(std::move(c));
    Case d{"moe_down_" + name, tokens, {halves(pairs * width), words(g.starts), words(g.blocks(tile))}};
    add_matrix(d.buffers, all * hidden, width, 4);
    d.buffers.push_back(halves(pairs * hidden));
    d.args = bytes_of(kernels::GroupedGemmArgs{hidden, width, group_size, slots});
    d.groups = {hidden / 64, g.most_blocks(tile), 1};
    d.bytes = down * g.used() + 2.0 * pairs * (hidden + width);
    d.operations = 2.0 * pairs * hidden * width;
    cases.push_back(std::move(d));
  }
  cases.push_back({"moe_combine",
                   tokens,
                   {halves(pairs * hidden), words(g.places), floats(pairs), floats(size_t{n} * hidden)},
                   bytes_of(kernels::CombineArgs{n, hidden, slots}),
                   {n, 1, 1},
                   2.0 * pairs * hidden + 8.0 * n * hidden,
                   0});
}

void add_delta(std::vector<Case>& cases, uint32_t n) {
  const std::string tokens = "n " + std::to_string(n);
  const size_t history = (kernels::conv_taps - 1) * channels, state = value_heads * 128 * 128;
  const Input conv = floats(kernels::conv_taps * channels), per_head = floats(value_heads), norm = floats(128);
  if (n == 1) {
    cases.push_back({"delta_step",
                     tokens,
                     {floats(delta_stride), conv, per_head, per_head, norm, floats(history), floats(history),
                      floats(state), floats(state), floats(value_heads * 128)},
                     bytes_of(kernels::DeltaArgs{1, key_heads, value_heads, delta_stride, 64, 1e-6f}),
                     {value_heads, 1, 1},
                     8.0 * state,
                     7.0 * state});
    return;
  }
  const std::vector<std::byte> args = bytes_of(kernels::DeltaArgs{n, key_heads, value_heads, delta_stride, 64, 1e-6f});
  const Input projections = halves(size_t{n} * delta_stride), qkv = halves(size_t{n} * channels);
  const Input gates = floats(size_t{n} * value_heads), o = floats(size_t{n} * value_heads * 128);
  cases.push_back({"delta_prepare",
                   tokens,
                   {projections, floats(size_t{n} * 64), conv, per_head, per_head, floats(history), floats(history),
                    qkv, gates, gates},
                   args,
                   {channels / 128, up(n, 16), 1},
                   4.0 * n * channels,
                   8.0 * n * channels});
  cases.push_back({"delta_scan",
                   tokens,
                   {qkv, gates, gates, floats(state), floats(state), o},
                   args,
                   {4, value_heads, 1},
                   2.0 * n * channels + 4.0 * n * value_heads * 128 + 8.0 * state,
                   7.0 * n * state});
  cases.push_back({"delta_norm",
                   tokens,
                   {o, projections, norm, halves(size_t{n} * value_heads * 128)},
                   args,
                   {value_heads, n, 1},
                   8.0 * n * value_heads * 128,
                   0});
}

// The last n of `context` tokens.
void add_attention(std::vector<Case>& cases, uint32_t n, uint32_t context) {
  const uint32_t D = kernels::head_dim, kv_blocks = up(context, kernels::kv_block_tokens);
  const std::string tokens = "n " + std::to_string(n) + ", context " + std::to_string(context);
  std::vector<uint32_t> blocks(kv_blocks);
  for (uint32_t i = 0; i < kv_blocks; ++i) blocks[i] = i;
  const Input pool = halves(size_t{kv_blocks} * kv_layers * 2 * kv_heads * kernels::kv_block_tokens * D);
  const Input rope = floats(2 * kernels::rope_low * 32 * 2), step = words({context - n, 0});
  kernels::AttentionArgs a{n, heads, kv_heads, attention_stride, kv_layers, 0, 64, 1, 1e-6f};
  const double kv_bytes = 4.0 * context * kv_heads * D;
  if (n == 1) {
    a.splits = std::min(64u, up(context, 128));
    const Input partial = floats(size_t{heads} * a.splits * (D + 2));
    cases.push_back(
        {"attend_step",
         tokens,
         {floats(attention_stride), floats(D), floats(D), rope, step, words(blocks), pool, floats(heads * D), partial},
         bytes_of(a),
         {a.splits, kv_heads, 1},
         kv_bytes,
         4.0 * context * heads * D});
    cases.push_back({"attend_merge",
                     tokens,
                     {floats(attention_stride), partial, floats(heads * D)},
                     bytes_of(a),
                     {heads, 4, 1},
                     4.0 * heads * a.splits * D,
                     0});
    return;
  }
  const Input projections = halves(size_t{n} * attention_stride), q = halves(size_t{n} * heads * D);
  cases.push_back({"attention_prepare",
                   tokens,
                   {projections, floats(D), floats(D), rope, step, words(blocks), pool, q},
                   bytes_of(a),
                   {up(n * (heads + kv_heads), 8), 1, 1},
                   4.0 * n * (heads + 2 * kv_heads) * D,
                   0});
  cases.push_back({"attend_chunk",
                   tokens,
                   {q, projections, step, words(blocks), pool, halves(size_t{n} * heads * D)},
                   bytes_of(a),
                   {up(n, 4), kv_heads, 1},
                   kv_bytes + 6.0 * n * heads * D,
                   4.0 * n * heads * D * (context - n / 2.0)});
}

void add_sampling(std::vector<Case>& cases) {
  const uint32_t parts = 64, candidates = 20;
  const kernels::SampleArgs a{vocab, candidates, parts, 1.0f, 0.95f, 0.0f, 1, 2};
  const Input kept = floats(size_t{parts} * candidates * 2);
  cases.push_back({"sample_parts", "top 20", {floats(vocab), kept}, bytes_of(a), {parts, 1, 1}, 4.0 * vocab, 0});
  cases.push_back({"sample_pick",
                   "top 20",
                   {kept, words({1, 0}), words(size_t{1})},
                   bytes_of(a),
                   {1, 1, 1},
                   8.0 * parts * candidates,
                   0});
}

class Bench {
 public:
  explicit Bench(gpu::Device& device) : device_(device) {
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < pattern; ++i) {
      const float v = normal(random);
      codes_.push_back(static_cast<uint32_t>(random()));
      floats_.push_back(v);
      halves_.push_back(float_to_bf16(v));
      scales_.push_back(float_to_bf16(0.01f * v));
    }
  }

  Result<void> run(const Case& c) {
    double total = 0;
    for (const Input& input : c.buffers) total += static_cast<double>(bytes_of(input));
    const size_t copies = static_cast<size_t>(std::clamp(cold_bytes / std::max(c.bytes, 1.0) + 1, 2.0, 64.0));
    // A decode step reads few experts of many: copies then differ in their choices alone.
    const bool share = total * static_cast<double>(copies) > most_bytes;
    std::vector<std::unique_ptr<gpu::Buffer>> buffers;
    std::vector<gpu::Dispatch> variants;
    for (size_t copy = 0; copy < copies; ++copy) {
      gpu::Dispatch dispatch{kernels::find_kernel(c.kernel), c.groups, {}, c.args, true};
      for (size_t i = 0; i < c.buffers.size(); ++i) {
        const size_t bytes = bytes_of(c.buffers[i]);
        if (share && copy > 0 && bytes > most_own_bytes) {
          dispatch.buffers.push_back(variants[0].buffers[i]);
          continue;
        }
        LILY_TRY(std::unique_ptr<gpu::Buffer> buffer, device_.allocate((bytes + 15) / 16 * 16));
        dispatch.buffers.push_back({buffer.get(), 0, bytes});
        LILY_CHECK(fill(dispatch.buffers.back(), c.buffers[i], copy));
        buffers.push_back(std::move(buffer));
      }
      variants.push_back(std::move(dispatch));
    }
    std::vector<gpu::Dispatch> list;
    for (size_t i = 0; i < dispatches; ++i) list.push_back(variants[i % copies]);
    LILY_TRY(const std::unique_ptr<gpu::Recording> recording, device_.record(std::move(list)));
    LILY_CHECK(device_.submit(*recording));
    LILY_CHECK(device_.wait());
    double seconds = 0;
    int runs = 0;
    for (; seconds < 0.1 && runs < 1000; ++runs) {
      const auto start = std::chrono::steady_clock::now();
      LILY_CHECK(device_.submit(*recording));
      LILY_CHECK(device_.wait());
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    const double each = seconds / runs / dispatches;
    std::printf("%-20s %-28s %10.2f %9.0f %9.1f\n", c.kernel.c_str(), c.shape.c_str(), each * 1e6,
                c.bytes / each * 1e-9, c.operations / each * 1e-12);
    std::fflush(stdout);
    return {};
  }

 private:
  static constexpr size_t pattern = 3 << 20, dispatches = 64;
  static constexpr size_t most_own_bytes = 4 << 20;
  static constexpr double cold_bytes = 300e6, most_bytes = 4e9;

  Result<void> fill(const BufferView& view, const Input& input, size_t copy) {
    switch (input.kind) {
      case Input::codes: return repeat(view, std::as_bytes(std::span(codes_)), copy);
      case Input::f32: return repeat(view, std::as_bytes(std::span(floats_)), copy);
      case Input::bf16: return repeat(view, std::as_bytes(std::span(halves_)), copy);
      case Input::scales: return repeat(view, std::as_bytes(std::span(scales_)), copy);
      case Input::words: return device_.upload(view, std::as_bytes(std::span(input.data)));
      case Input::choices: {
        std::vector<uint32_t> data = input.data;
        for (uint32_t& expert : data) {
          if (expert < experts) expert = (expert + 31 * static_cast<uint32_t>(copy)) % experts;
        }
        return device_.upload(view, std::as_bytes(std::span(data)));
      }
    }
    return {};
  }
  // Every copy starts elsewhere in the pattern.
  Result<void> repeat(const BufferView& view, std::span<const std::byte> data, size_t copy) {
    data = data.subspan(copy * 65536 % (data.size() / 2));
    for (size_t first = 0; first < view.bytes; first += data.size()) {
      const size_t count = std::min(data.size(), view.bytes - first);
      LILY_CHECK(device_.upload(view.part(first, count), data.first(count)));
    }
    return {};
  }

  gpu::Device& device_;
  std::vector<uint32_t> codes_;
  std::vector<float> floats_;
  std::vector<uint16_t> halves_, scales_;
};

// Null where this build has no such kernel.
const kernels::KernelInfo* info_of(const Case& c) {
  for (const kernels::KernelInfo& info : kernels::catalog()) {
    if (info.name == c.kernel) return &info;
  }
  return nullptr;
}

// Whether the cases above still say what the kernels want.
bool is_current(const Case& c) {
  const kernels::KernelInfo* const info = info_of(c);
  if (!info || (info->accesses.size() == c.buffers.size() && info->args_bytes == c.args.size())) return true;
  std::fprintf(stderr, "gpu_kernels: %s takes other buffers or arguments than this program gives it\n",
               c.kernel.c_str());
  return false;
}

int run(const std::string& device_name, const std::string& part) {
  Result<std::unique_ptr<gpu::Device>> device = gpu::open_device(device_name);
  if (!device) {
    std::fprintf(stderr, "gpu_kernels: %s\n", device.error().message().c_str());
    return 1;
  }
  std::vector<Case> cases;
  for (const uint32_t n : {1u, 4u, 64u, 512u, 2048u}) {
    n <= 16 ? add_gemv(cases, n) : add_gemm(cases, n);
    n <= 16 ? add_expert_step(cases, n) : add_expert_groups(cases, n);
    if (n != 4) add_delta(cases, n);
  }
  for (const uint32_t context : {1024u, 32768u}) add_attention(cases, 1, context);
  add_attention(cases, 2048, 2048);
  add_attention(cases, 2048, 32768);
  add_sampling(cases);

  if (!std::all_of(cases.begin(), cases.end(), is_current)) return 1;

  std::printf("%s\n%-20s %-28s %10s %9s %9s\n", (*device)->traits().name.c_str(), "kernel", "shape", "us", "GB/s",
              "TFLOP/s");
  Bench bench(**device);
  for (const Case& c : cases) {
    if (!info_of(c) || c.kernel.find(part) == std::string::npos) continue;
    if (const Result<void> done = bench.run(c); !done) {
      std::fprintf(stderr, "gpu_kernels: %s: %s\n", c.kernel.c_str(), done.error().message().c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace lily

int main(int argc, char** argv) { return lily::run(argc > 1 ? argv[1] : "cuda", argc > 2 ? argv[2] : ""); }
