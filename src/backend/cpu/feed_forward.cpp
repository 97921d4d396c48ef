#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/cpu/layers.h"

namespace lily::cpu {
namespace {

// The k largest of logits [experts] in descending order (ties go to the lower expert), and their softmax among
// themselves, which equals the softmax over all experts renormalised.
void choose_experts(const float* logits, int experts, int k, int32_t* choice, float* weight) {
  int chosen = 0;
  for (int e = 0; e < experts; ++e) {
    if (chosen == k && logits[e] <= logits[choice[k - 1]]) continue;
    int place = chosen < k ? chosen++ : k - 1;
    for (; place > 0 && logits[e] > logits[choice[place - 1]]; --place) choice[place] = choice[place - 1];
    choice[place] = e;
  }
  float total = 0;
  for (int i = 0; i < k; ++i) total += weight[i] = std::exp(logits[choice[i]] - logits[choice[0]]);
  for (int i = 0; i < k; ++i) weight[i] /= total;
}

}  // namespace

void FeedForward::run(Compute& compute, const ModelConfig& config, const LayerWeights& w, const Activations& in,
                      float* x) {
  const int64_t tokens = in.tokens;
  experts_.clear();
  if (!config.is_moe()) {
    shared_.resize(tokens, config.mlp_size);
    experts_.push_back({w.mlp.gate, w.mlp.up, w.mlp.down, nullptr, nullptr, tokens, &in, 0, &shared_, 0});
  } else {
    grow(router_logits_, tokens * config.num_experts);
    grow(shared_weight_, tokens);
    const Product products[] = {{&w.moe.router, router_logits_.data(), config.num_experts},
                                {&w.moe.shared_expert_gate, shared_weight_.data(), 1}};
    compute.multiply(products, in);
    route(compute, config, tokens);
    shared_.resize(tokens, config.shared_expert_size);
    routed_.resize(tokens * config.experts_per_token, config.expert_size);
    const MlpWeights& s = w.moe.shared;
    experts_.push_back({s.gate, s.up, s.down, nullptr, shared_weight_.data(), tokens, &in, 0, &shared_, 0});
    group_by_expert(compute, config, w.moe, in);
  }
  gate_and_up(compute, tokens);
  down_and_combine(compute, config.hidden_size, tokens, x);
}

void FeedForward::route(Compute& compute, const ModelConfig& config, int64_t tokens) {
  const int experts = config.num_experts, k = config.experts_per_token;
  grow(choice_, tokens * k);
  grow(choice_weight_, tokens * k);
  compute.parallel_for(tokens, 8 * tokens * experts, [&](int64_t t, int) {
    choose_experts(&router_logits_[t * experts], experts, k, &choice_[t * k], &choice_weight_[t * k]);
    shared_weight_[t] = sigmoid(shared_weight_[t]);
  });
}

// Histogram, prefix sum, scatter: the tokens of each expert become one run of the lists, and of rows of its input.
void FeedForward::group_by_expert(Compute& compute, const ModelConfig& config, const MoeWeights& w,
                                  const Activations& in) {
  const int64_t k = config.experts_per_token, pairs = in.tokens * k;
  std::vector<int64_t>& end = run_end_;
  end.assign(config.num_experts + 1, 0);
  for (int64_t i = 0; i < pairs; ++i) ++end[choice_[i] + 1];
  std::partial_sum(end.begin(), end.end(), end.begin());  // end[e] is now the first row of expert e
  token_list_.resize(pairs);
  weight_list_.resize(pairs);
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t row = end[choice_[i]]++;
    token_list_[row] = static_cast<int32_t>(i / k);
    weight_list_[row] = choice_weight_[i];
  }
  const bool one_token = in.tokens == 1;  // which every expert reads where it is
  if (!one_token) {
    const bool split = Compute::reads_split(w.gate[0], in) && Compute::reads_split(w.up[0], in);
    compute.gather(in, token_list_, split, gathered_);
  }
  int64_t first = 0;
  for (int e = 0; e < config.num_experts; first = end[e++]) {
    if (end[e] == first) continue;
    experts_.push_back({w.gate[e], w.up[e], w.down[e], &token_list_[first], &weight_list_[first], end[e] - first,
                        one_token ? &in : &gathered_, one_token ? 0 : first, &routed_, first});
  }
}

// silu(gate x) * up x for every expert and its tokens. An item is an expert, if it has few tokens, so that a thread
// can fetch the next rows while it works; or a row block of one.
void FeedForward::gate_and_up(Compute& compute, int64_t tokens) {
  items_.clear();
  int64_t work = 0;
  for (const Expert& expert : experts_) {
    const int64_t rows = expert.gate.rows;
    work += 2 * expert.n * rows * expert.gate.cols;
    const bool whole = tokens > 1 && expert.n < tokens;
    const int64_t step = whole ? rows : compute.block_rows(rows);
    for (int64_t r = 0; r < rows; r += step) items_.push_back({&expert, r, std::min(r + step, rows)});
  }
  compute.parallel_for(static_cast<int64_t>(items_.size()), work, [&](int64_t i, int worker) {
    const auto [e, begin, end] = items_[i];
    const int64_t step = compute.block_rows(e->gate.rows);
    for (int64_t first = begin; first < end; first += step) {
      const int64_t rows = std::min(step, end - first), after = std::min(step, end - first - rows);
      float* gate = compute.scratch(worker, Compute::Slot::gate, e->n * rows);
      float* up = compute.scratch(worker, Compute::Slot::up, e->n * rows);
      Block block = {&e->gate, first, rows, e->input, e->input_first, e->n, gate, rows, upcoming(e->up, first, rows)};
      compute.multiply_block(block, worker);
      block.w = &e->up;
      block.out = up;
      block.next = upcoming(e->gate, first + rows, after);
      if (const size_t later = i + compute.threads(); after == 0 && later < items_.size()) {  // likely this thread's
        block.next = upcoming(items_[later].expert->gate, items_[later].first, step);
      }
      compute.multiply_block(block, worker);
      for (int64_t t = 0; t < e->n; ++t) {
        compute.kernels().silu_multiply(gate + t * rows, up + t * rows, rows, e->activation->row(e->first + t) + first);
      }
    }
  });
}

// x += weight * down(activation). An item owns some columns of x, so experts can add to the same token without locks.
void FeedForward::down_and_combine(Compute& compute, int64_t hidden, int64_t tokens, float* x) {
  compute.prepare(shared_, tokens);
  if (experts_.size() > 1) compute.prepare(routed_, tokens);
  int64_t work = 0;
  for (const Expert& expert : experts_) work += expert.n * hidden * expert.down.cols;
  const int64_t block_rows = compute.block_rows(hidden), blocks = (hidden + block_rows - 1) / block_rows;
  compute.parallel_for(blocks, work, [&](int64_t item, int worker) {
    const int64_t first = item * block_rows, rows = std::min(block_rows, hidden - first);
    for (size_t i = 0; i < experts_.size(); ++i) {
      const Expert& e = experts_[i];
      float* out = compute.scratch(worker, Compute::Slot::product, e.n * rows);
      Block block = {&e.down, first, rows, e.activation, e.first, e.n, out, rows};
      if (i + 1 < experts_.size()) {
        block.next = upcoming(experts_[i + 1].down, first, rows);
      } else if (const int64_t later = item + compute.threads(); later < blocks) {  // likely this thread's next
        block.next = upcoming(experts_[0].down, later * block_rows, std::min(block_rows, hidden - later * block_rows));
      }
      compute.multiply_block(block, worker);
      for (int64_t t = 0; t < e.n; ++t) {
        const int64_t token = e.tokens ? e.tokens[t] : t;
        compute.kernels().add_scaled(x + token * hidden + first, out + t * rows, e.weights ? e.weights[t] : 1.0f, rows);
      }
    }
  });
}

}  // namespace lily::cpu
