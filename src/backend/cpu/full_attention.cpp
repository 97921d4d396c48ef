#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/layers.h"

namespace lily::cpu {
namespace {

// Tokens of one attention work item: with 8 heads a KV head, 64 queries read each key once.
constexpr int64_t tile_tokens = 8;

// A decode step's keys are split among threads in segments of at least this many blocks (1024 tokens).
constexpr int64_t min_segment_blocks = 4;

void rotate(float* head, const float* cos, const float* sin, int half) {
  for (int i = 0; i < half; ++i) {
    const float a = head[i], b = head[i + half];
    head[i] = a * cos[i] - b * sin[i];
    head[i + half] = b * cos[i] + a * sin[i];
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Folds the segments' partial softmaxes of one query into out [head_dim].
void merge_segments(const Kernels& kernels, const AttentionQuery* first, int64_t segments, int64_t stride, int dim,
                    float* out) {
  float top = -std::numeric_limits<float>::infinity();
  for (int64_t s = 0; s < segments; ++s) top = std::max(top, first[s * stride].max);
  float total = 0;
  for (int64_t s = 0; s < segments; ++s) total += first[s * stride].total * std::exp(first[s * stride].max - top);
  std::fill_n(out, dim, 0.0f);
  for (int64_t s = 0; s < segments; ++s) {
    const AttentionQuery& part = first[s * stride];
    kernels.add_scaled(out, part.sum, std::exp(part.max - top) / total, dim);
  }
}

}  // namespace

void RopeTable::fill(const ModelConfig& config, Runs runs) {
  const int half = config.rotary_dim / 2;
  const int64_t tokens = runs.back().first + runs.back().tokens;
  cos.resize(tokens * half);
  sin.resize(tokens * half);
  for (int i = 0; i < half; ++i) {
    const double frequency = std::pow(config.rope_theta, -2.0 * i / config.rotary_dim);
    for (const Run& run : runs) {
      for (int64_t t = 0; t < run.tokens; ++t) {
        const double angle = static_cast<double>(run.state->position() + t) * frequency;
        cos[(run.first + t) * half + i] = static_cast<float>(std::cos(angle));
        sin[(run.first + t) * half + i] = static_cast<float>(std::sin(angle));
      }
    }
  }
}

void FullAttention::run(Compute& compute, const ModelConfig& config, const FullAttentionWeights& w,
                        const Activations& in, const RopeTable& rope, Runs runs, int layer, float* x) {
  const int64_t tokens = in.tokens, q_size = config.query_size(), kv_size = config.kv_size();
  grow(query_gate_, tokens * 2 * q_size);
  grow(keys_, tokens * kv_size);
  grow(values_, tokens * kv_size);
  grow(queries_, tokens * q_size);
  const Product inputs[] = {
      {&w.q, query_gate_.data(), 2 * q_size}, {&w.k, keys_.data(), kv_size}, {&w.v, values_.data(), kv_size}};
  compute.multiply(inputs, in);

  out_.resize(tokens, config.query_size());
  for (const Run& run : runs) {
    write_keys_and_queries(compute, config, w, rope, run, layer);
    attend(compute, config, run, layer);
  }
  compute.prepare(out_, tokens);
  const Product output[] = {{&w.o, x, config.hidden_size, true}};
  compute.multiply(output, out_);
}

void FullAttention::write_keys_and_queries(Compute& compute, const ModelConfig& config, const FullAttentionWeights& w,
                                           const RopeTable& rope, const Run& run, int layer) {
  const Kernels& kernels = compute.kernels();
  const int dim = config.head_dim, half = config.rotary_dim / 2;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  compute.parallel_for(run.tokens, 8 * run.tokens * config.query_size(), [&](int64_t row, int) {
    const int64_t t = run.first + row, position = run.state->position() + row;
    const float *cos = &rope.cos[t * half], *sin = &rope.sin[t * half];
    KvBlock& block = *run.state->layers[layer].kv[position / KvBlock::tokens];
    const int64_t slot = position % KvBlock::tokens;
    for (int h = 0; h < config.num_kv_heads; ++h) {
      float* key = &keys_[(t * config.num_kv_heads + h) * dim];
      kernels.rms_norm(key, w.k_norm.data(), config.rms_norm_eps, dim, key);
      rotate(key, cos, sin, half);
      block.write(h, slot, key, &values_[(t * config.num_kv_heads + h) * dim]);
    }
    for (int h = 0; h < config.num_heads; ++h) {
      const int64_t i = t * config.num_heads + h;
      float* query = &queries_[i * dim];
      kernels.rms_norm(&query_gate_[i * 2 * dim], w.q_norm.data(), config.rms_norm_eps, dim, query);
      rotate(query, cos, sin, half);
      for (int d = 0; d < dim; ++d) query[d] *= scale;
    }
  });
}

void FullAttention::attend(Compute& compute, const ModelConfig& config, const Run& run, int layer) {
  const Kernels& kernels = compute.kernels();
  const KvBlocks& kv = run.state->layers[layer].kv;
  const int64_t position = run.state->position(), tokens = run.tokens;
  const int dim = config.head_dim, heads = config.num_heads, per_kv = heads / config.num_kv_heads;
  const int64_t blocks = ceil_div(position + tokens, KvBlock::tokens);
  const int64_t tiles = ceil_div(tokens, tile_tokens) * config.num_kv_heads;
  const int64_t wanted = ceil_div(2 * compute.threads(), tiles);  // segments that would keep every thread busy
  const int64_t segments = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, blocks / min_segment_blocks));
  const int64_t segment_blocks = ceil_div(blocks, segments);
  sums_.assign(segments * tokens * heads * dim, 0.0f);
  softmax_.resize(segments * tokens * heads);

  const int64_t work = 2 * tokens * (position + tokens) * config.query_size();
  compute.parallel_for(tiles * segments, work, [&](int64_t item, int worker) {
    const int64_t segment = item % segments, tile = item / segments;
    const int64_t kv_head = tile % config.num_kv_heads, first = tile / config.num_kv_heads * tile_tokens;
    const int64_t n = std::min(tile_tokens, tokens - first);
    AttentionQuery queries[tile_tokens * 64];
    const int group = std::min(per_kv, 64);
    for (int g = 0; g < per_kv; g += group) {  // at most 64 heads at a time
      const int count = std::min(group, per_kv - g);
      for (int64_t i = 0; i < n * count; ++i) {
        const int64_t index = (first + i / count) * heads + kv_head * per_kv + g + i % count;
        queries[i] = {&queries_[(run.first * heads + index) * dim], &sums_[(segment * tokens * heads + index) * dim],
                      -std::numeric_limits<float>::infinity(), 0, 0};
      }
      const int64_t end = std::min((segment + 1) * segment_blocks, ceil_div(position + first + n, KvBlock::tokens));
      for (int64_t b = segment * segment_blocks; b < end; ++b) {
        const int64_t keys = std::min(KvBlock::tokens, position + first + n - b * KvBlock::tokens);
        for (int64_t i = 0; i < n * count; ++i)
          queries[i].visible = position + first + i / count + 1 - b * KvBlock::tokens;
        float* scores = compute.scratch(worker, Compute::Slot::scores, n * count * attention_part);
        kernels.attend(kv[b]->keys(kv_head), kv[b]->values(kv_head), kv_dtype_, keys, dim, queries, n * count, scores);
      }
      for (int64_t i = 0; i < n * count; ++i) {
        softmax_[(segment * tokens + first + i / count) * heads + kv_head * per_kv + g + i % count] = queries[i];
      }
    }
  });

  compute.parallel_for(tokens, 8 * tokens * config.query_size(), [&](int64_t t, int) {
    for (int h = 0; h < heads; ++h) {
      float* out = out_.row(run.first + t) + h * dim;
      merge_segments(kernels, &softmax_[t * heads + h], segments, tokens * heads, dim, out);
      kernels.sigmoid_multiply(&query_gate_[(((run.first + t) * heads + h) * 2 + 1) * dim], dim, out);
    }
  });
}

}  // namespace lily::cpu
