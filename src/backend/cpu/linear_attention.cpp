#include <algorithm>
#include <cmath>

#include "backend/cpu/layers.h"

namespace lily::cpu {
namespace {

// Columns of a head's state that one work item updates. Many tokens: half a head of 128, which stays in a first-level
// cache. One token: a head, which streams from memory.
constexpr int64_t columns_per_item(int64_t tokens) { return tokens > 1 ? 64 : 128; }

float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

}  // namespace

void LinearAttention::run(Compute& compute, const ModelConfig& config, const LinearAttentionWeights& w,
                          const Activations& in, Runs runs, int layer, float* x) {
  const Kernels& kernels = compute.kernels();
  const int64_t tokens = in.tokens, channels = config.conv_channels(), value_size = config.linear_value_size();
  const int heads = config.linear_value_heads, dk = config.linear_key_dim, dv = config.linear_value_dim;
  const int64_t history = config.conv_kernel - 1, conv_rows = runs.size() > 1 ? history + 1 : 1;
  grow(conv_in_, (static_cast<int64_t>(runs.size()) * history + tokens) * channels);
  grow(qkv_, tokens * channels);
  grow(z_, tokens * value_size);
  grow(decay_, tokens * heads);
  grow(beta_, tokens * heads);
  grow(read_, tokens * value_size);

  const Product inputs[] = {{&w.qkv, conv_in_.data() + history * channels, conv_rows * channels},
                            {&w.z, z_.data(), value_size},
                            {&w.a, decay_.data(), heads},
                            {&w.b, beta_.data(), heads}};
  compute.multiply(inputs, in);
  convolve_and_normalize(compute, config, w, runs, layer);
  gates(compute, config, w, tokens);

  const int heads_per_key = heads / config.linear_key_heads;
  const int columns = static_cast<int>(columns_per_item(runs[0].tokens)), items_per_head = (dv + columns - 1) / columns;
  const int64_t items_per_run = int64_t{heads} * items_per_head;
  compute.parallel_for(
      static_cast<int64_t>(runs.size()) * items_per_run, 3 * tokens * value_size * dk, [&](int64_t item, int) {
        const Run& run = runs[item / items_per_run];
        const int64_t head = item % items_per_run / items_per_head;
        const int column = static_cast<int>(item % items_per_head) * columns;
        const float* q = &qkv_[run.first * channels + head / heads_per_key * dk];
        kernels.delta_rule({.state = &run.state->layers[layer].recurrent[head * dk * dv],
                            .q = q,
                            .k = q + config.linear_key_size(),
                            .v = &qkv_[run.first * channels + 2 * config.linear_key_size() + head * dv],
                            .decay = &decay_[run.first * heads + head],
                            .beta = &beta_[run.first * heads + head],
                            .out = &read_[run.first * value_size + head * dv],
                            .stride = channels,
                            .gate_stride = heads,
                            .out_stride = value_size,
                            .tokens = run.tokens,
                            .key_dim = dk,
                            .value_dim = dv},
                           column, std::min(columns, dv - column));
      });

  out_.resize(tokens, value_size);
  compute.parallel_for(tokens, 8 * tokens * value_size, [&](int64_t t, int) {
    for (int h = 0; h < heads; ++h) {
      float* out = out_.row(t) + h * dv;
      const int64_t at = t * value_size + h * dv;
      kernels.rms_norm(&read_[at], w.norm.data(), config.rms_norm_eps, dv, out);
      kernels.silu_multiply(&z_[at], out, dv, out);
    }
  });
  compute.prepare(out_, tokens);
  const Product output[] = {{&w.out, x, config.hidden_size, true}};
  compute.multiply(output, out_);
}

// An item owns some channels over all tokens of a run: it takes their history in, and leaves what the next chunk needs.
void LinearAttention::convolve_and_normalize(Compute& compute, const ModelConfig& config,
                                             const LinearAttentionWeights& w, Runs runs, int layer) {
  const Kernels& kernels = compute.kernels();
  const int64_t channels = config.conv_channels(), dk = config.linear_key_dim, key_size = config.linear_key_size();
  const int64_t history = config.conv_kernel - 1, width = 4 * dk, items = (channels + width - 1) / width;
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(dk));
  const int64_t run_count = static_cast<int64_t>(runs.size()), tokens = runs.back().first + runs.back().tokens;
  compute.parallel_for(run_count * items, 64 * tokens * channels, [&](int64_t item, int) {
    const Run& run = runs[item / items];
    const int64_t first = item % items * width, n = std::min(width, channels - first);
    float* past = run.state->layers[layer].conv.data() + first;
    float* in = conv_in_.data() + (run.first + item / items * history) * channels + first;
    for (int64_t j = 0; j < history; ++j) std::copy_n(past + j * channels, n, in + j * channels);
    for (int64_t t = 0; t < run.tokens; ++t) {
      float* out = &qkv_[(run.first + t) * channels + first];
      kernels.convolve({w.conv.data() + first, channels, in + t * channels, channels}, config.conv_kernel, n, out);
      for (int64_t c = first; c < std::min(first + n, 2 * key_size); c += dk, out += dk) {  // queries, then keys
        const float scale = c < key_size ? query_scale : 1.0f;
        const float inverse = scale / std::sqrt(kernels.dot(out, out, dk) + 1e-6f);
        for (int64_t i = 0; i < dk; ++i) out[i] *= inverse;
      }
    }
    for (int64_t j = 0; j < history; ++j) std::copy_n(in + (run.tokens + j) * channels, n, past + j * channels);
  });
}

void LinearAttention::gates(Compute& compute, const ModelConfig& config, const LinearAttentionWeights& w,
                            int64_t tokens) {
  const int heads = config.linear_value_heads;
  compute.parallel_for(tokens, 256 * tokens * heads, [&](int64_t t, int) {
    for (int h = 0; h < heads; ++h) {
      float& decay = decay_[t * heads + h];
      float& beta = beta_[t * heads + h];
      decay = std::exp(-std::exp(w.a_log[h]) * softplus(decay + w.dt_bias[h]));
      beta = sigmoid(beta);
    }
  });
}

}  // namespace lily::cpu
