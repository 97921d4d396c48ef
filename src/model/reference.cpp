#include "model/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lily {
namespace {

using Floats = std::vector<float>;

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }
float silu(float x) { return x * sigmoid(x); }
float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{a[i]} * b[i];
  return sum;
}

void round_to_bf16(Floats& x) {
  for (float& v : x) v = bf16_to_float(float_to_bf16(v));
}

// y [rows of x, w.rows] = x wᵀ for x [rows, w.cols].
Floats linear(const WeightMatrix& w, std::span<const float> in, bool bf16) {
  Floats x(in.begin(), in.end());
  if (bf16) round_to_bf16(x);
  const int64_t rows = static_cast<int64_t>(x.size()) / w.cols;
  Floats y(rows * w.rows), weight(w.cols);
  for (int64_t r = 0; r < w.rows; ++r) {
    w.dequantize_row(r, weight.data());
    for (int64_t t = 0; t < rows; ++t) {
      y[t * w.rows + r] = static_cast<float>(dot(weight.data(), &x[t * w.cols], w.cols));
    }
  }
  if (bf16) round_to_bf16(y);
  return y;
}

// x / rms(x) * w on consecutive runs of w.size() elements.
void rms_norm(std::span<float> x, const Floats& w, float eps) {
  for (size_t start = 0; start < x.size(); start += w.size()) {
    float* run = &x[start];
    const double mean_square = dot(run, run, static_cast<int64_t>(w.size())) / static_cast<double>(w.size());
    const float scale = static_cast<float>(1.0 / std::sqrt(mean_square + eps));
    for (size_t i = 0; i < w.size(); ++i) run[i] = run[i] * scale * w[i];
  }
}

// Rotates the pairs (i, i + rotary_dim / 2) of one head by position * theta^(-2i / rotary_dim).
void rope(float* head, int64_t position, const ModelConfig& config) {
  const int half = config.rotary_dim / 2;
  for (int i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * std::pow(config.rope_theta, -2.0 * i / config.rotary_dim);
    const float c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
    const float a = head[i], b = head[i + half];
    head[i] = a * c - b * s;
    head[i + half] = b * c + a * s;
  }
}

// softmax(q K / sqrt(head_dim)) V of one head over its first `length` cached tokens.
void attend(const float* q, const ReferenceLayerState& state, int kv_head, int64_t length, const ModelConfig& config,
            float* out) {
  const int dim = config.head_dim;
  const int64_t stride = config.kv_size();
  Floats p(length);
  for (int64_t s = 0; s < length; ++s) {
    p[s] = static_cast<float>(dot(q, &state.keys[s * stride + kv_head * dim], dim) / std::sqrt(dim));
  }
  const float top = *std::max_element(p.begin(), p.end());
  double total = 0;
  for (float& x : p) total += x = std::exp(x - top);
  for (int i = 0; i < dim; ++i) {
    double sum = 0;
    for (int64_t s = 0; s < length; ++s) sum += double{p[s]} * state.values[s * stride + kv_head * dim + i];
    out[i] = static_cast<float>(sum / total);
  }
}

Floats full_attention(const ModelConfig& config, const FullAttentionWeights& w, ReferenceLayerState& state,
                      int64_t position, std::span<const float> x, bool bf16) {
  const int64_t tokens = static_cast<int64_t>(x.size()) / config.hidden_size;
  const int dim = config.head_dim, heads_per_kv = config.num_heads / config.num_kv_heads;
  const Floats qg = linear(w.q, x, bf16);  // per head: query, then gate
  Floats k = linear(w.k, x, bf16);
  const Floats v = linear(w.v, x, bf16);
  rms_norm(k, w.k_norm, config.rms_norm_eps);
  for (int64_t i = 0; i < tokens * config.num_kv_heads; ++i)
    rope(&k[i * dim], position + i / config.num_kv_heads, config);
  state.keys.insert(state.keys.end(), k.begin(), k.end());
  state.values.insert(state.values.end(), v.begin(), v.end());

  Floats out(tokens * config.query_size());
  for (int64_t i = 0; i < tokens * config.num_heads; ++i) {
    const int64_t t = i / config.num_heads;
    const int head = static_cast<int>(i % config.num_heads);
    Floats q(&qg[i * 2 * dim], &qg[i * 2 * dim] + dim);
    rms_norm(q, w.q_norm, config.rms_norm_eps);
    rope(q.data(), position + t, config);
    attend(q.data(), state, head / heads_per_kv, position + t + 1, config, &out[i * dim]);
    const float* gate = &qg[i * 2 * dim + dim];
    for (int d = 0; d < dim; ++d) out[i * dim + d] *= sigmoid(gate[d]);
  }
  return linear(w.o, out, bf16);
}

// Causal depthwise convolution and SiLU over qkv [tokens, channels], in place; `history` holds the inputs before it.
void convolve(const ModelConfig& config, const Floats& weight, Floats& history, Floats& qkv) {
  const int64_t channels = config.conv_channels(), taps = config.conv_kernel;
  Floats input = history;
  input.insert(input.end(), qkv.begin(), qkv.end());
  const int64_t tokens = static_cast<int64_t>(qkv.size()) / channels;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < taps; ++j) sum += double{weight[j * channels + c]} * input[(t + j) * channels + c];
      qkv[t * channels + c] = silu(static_cast<float>(sum));
    }
  }
  history.assign(input.end() - (taps - 1) * channels, input.end());
}

void l2_normalize(float* x, int64_t n, float scale) {
  const float inverse = static_cast<float>(scale / std::sqrt(dot(x, x, n) + 1e-6));
  for (int64_t i = 0; i < n; ++i) x[i] *= inverse;
}

// One step of the gated delta rule on S [key_dim, value_dim]:
// S <- decay S;  S <- S + k (beta (v - Sᵀk))ᵀ;  out = Sᵀq.
void delta_rule(float* s, const float* q, const float* k, const float* v, float decay, float beta, int key_dim,
                int value_dim, float* out) {
  for (int j = 0; j < value_dim; ++j) {
    double recalled = 0;
    for (int i = 0; i < key_dim; ++i) recalled += double{s[i * value_dim + j] *= decay} * k[i];
    const float update = beta * (v[j] - static_cast<float>(recalled));
    double sum = 0;
    for (int i = 0; i < key_dim; ++i) sum += double{s[i * value_dim + j] += k[i] * update} * q[i];
    out[j] = static_cast<float>(sum);
  }
}

Floats linear_attention(const ModelConfig& config, const LinearAttentionWeights& w, ReferenceLayerState& state,
                        std::span<const float> x, bool bf16) {
  const int64_t tokens = static_cast<int64_t>(x.size()) / config.hidden_size;
  const int heads = config.linear_value_heads, heads_per_key = heads / config.linear_key_heads;
  const int dk = config.linear_key_dim, dv = config.linear_value_dim, key_size = config.linear_key_size();
  Floats qkv = linear(w.qkv, x, bf16);
  const Floats z = linear(w.z, x, bf16), a = linear(w.a, x, bf16), b = linear(w.b, x, bf16);
  convolve(config, w.conv, state.conv, qkv);

  Floats out(tokens * config.linear_value_size());
  for (int64_t t = 0; t < tokens; ++t) {
    float* q = &qkv[t * config.conv_channels()];
    float* k = q + key_size;
    const float* v = k + key_size;
    for (int h = 0; h < config.linear_key_heads; ++h) {
      l2_normalize(q + h * dk, dk, 1.0f / std::sqrt(static_cast<float>(dk)));
      l2_normalize(k + h * dk, dk, 1.0f);
    }
    for (int h = 0; h < heads; ++h) {
      const float decay = std::exp(-std::exp(w.a_log[h]) * softplus(a[t * heads + h] + w.dt_bias[h]));
      const int64_t key_offset = int64_t{h / heads_per_key} * dk;
      delta_rule(&state.recurrent[int64_t{h} * dk * dv], q + key_offset, k + key_offset, v + h * dv, decay,
                 sigmoid(b[t * heads + h]), dk, dv, &out[(t * heads + h) * dv]);
    }
  }
  rms_norm(out, w.norm, config.rms_norm_eps);
  for (size_t i = 0; i < out.size(); ++i) out[i] *= silu(z[i]);
  return linear(w.out, out, bf16);
}

Floats swiglu(const WeightMatrix& gate, const WeightMatrix& up, const WeightMatrix& down, std::span<const float> x,
              bool bf16) {
  Floats activation = linear(gate, x, bf16);
  const Floats linear_part = linear(up, x, bf16);
  for (size_t i = 0; i < activation.size(); ++i) activation[i] = silu(activation[i]) * linear_part[i];
  return linear(down, activation, bf16);
}

// The tokens that chose one expert, and with what weight.
struct Routed {
  std::vector<int64_t> tokens;
  Floats weights;
};

// Softmax over all experts, the top k of them, weights renormalised to sum 1. Ties go to the lower expert.
std::vector<Routed> route(const ModelConfig& config, const Floats& router_logits) {
  const int experts = config.num_experts, k = config.experts_per_token;
  std::vector<Routed> routed(experts);
  std::vector<int> order(experts);
  for (int64_t t = 0; t * experts < static_cast<int64_t>(router_logits.size()); ++t) {
    const float* logit = &router_logits[t * experts];
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return logit[i] > logit[j]; });
    double total = 0;
    for (int i = 0; i < k; ++i) total += std::exp(double{logit[order[i]]} - logit[order[0]]);
    for (int i = 0; i < k; ++i) {
      routed[order[i]].tokens.push_back(t);
      routed[order[i]].weights.push_back(
          static_cast<float>(std::exp(double{logit[order[i]]} - logit[order[0]]) / total));
    }
  }
  return routed;
}

Floats mixture_of_experts(const ModelConfig& config, const MoeWeights& w, std::span<const float> x, bool bf16) {
  const int64_t hidden = config.hidden_size;
  Floats out = swiglu(w.shared.gate, w.shared.up, w.shared.down, x, bf16);
  const Floats shared_gate = linear(w.shared_expert_gate, x, bf16);
  for (size_t i = 0; i < out.size(); ++i) out[i] *= sigmoid(shared_gate[i / hidden]);

  const std::vector<Routed> routed = route(config, linear(w.router, x, bf16));
  for (int e = 0; e < config.num_experts; ++e) {
    Floats rows;
    for (int64_t t : routed[e].tokens) rows.insert(rows.end(), &x[t * hidden], &x[t * hidden] + hidden);
    if (rows.empty()) continue;
    const Floats y = swiglu(w.gate[e], w.up[e], w.down[e], rows, bf16);
    for (size_t i = 0; i < routed[e].tokens.size(); ++i) {
      for (int64_t d = 0; d < hidden; ++d)
        out[routed[e].tokens[i] * hidden + d] += routed[e].weights[i] * y[i * hidden + d];
    }
  }
  return out;
}

void add(Floats& x, const Floats& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

}  // namespace

ReferenceState::ReferenceState(const ModelConfig& config, bool with_bf16)
    : bf16(with_bf16), layers(config.layers.size()) {
  for (int i = 0; i < config.num_layers(); ++i) {
    if (config.layers[i] != LayerKind::linear_attention) continue;
    layers[i].conv.resize(int64_t{config.conv_kernel - 1} * config.conv_channels());
    layers[i].recurrent.resize(int64_t{config.linear_value_heads} * config.linear_key_dim * config.linear_value_dim);
  }
}

std::vector<float> reference_forward(const ModelConfig& config, const ModelWeights& weights, ReferenceState& state,
                                     std::span<const int32_t> tokens, const HiddenObserver& observe) {
  Floats x(tokens.size() * config.hidden_size);
  for (size_t t = 0; t < tokens.size(); ++t) weights.embed.dequantize_row(tokens[t], &x[t * config.hidden_size]);

  for (int i = 0; i < config.num_layers(); ++i) {
    if (observe) observe(i, x);
    const LayerWeights& layer = weights.layers[i];
    Floats normed = x;
    rms_norm(normed, layer.input_norm, config.rms_norm_eps);
    add(x, layer.kind == LayerKind::full_attention
               ? full_attention(config, layer.full, state.layers[i], state.position, normed, state.bf16)
               : linear_attention(config, layer.linear, state.layers[i], normed, state.bf16));
    if (state.bf16) round_to_bf16(x);
    normed = x;
    rms_norm(normed, layer.post_attention_norm, config.rms_norm_eps);
    add(x, config.is_moe() ? mixture_of_experts(config, layer.moe, normed, state.bf16)
                           : swiglu(layer.mlp.gate, layer.mlp.up, layer.mlp.down, normed, state.bf16));
    if (state.bf16) round_to_bf16(x);
  }
  rms_norm(x, weights.final_norm, config.rms_norm_eps);
  if (observe) observe(config.num_layers(), x);
  state.position += static_cast<int64_t>(tokens.size());
  return x;
}

std::vector<float> reference_logits(const ModelWeights& weights, std::span<const float> hidden) {
  return linear(weights.head, hidden, false);
}

}  // namespace lily
