// Every backend against the outputs of Hugging Face transformers on the oracle checkpoints.
//
// Tolerance: float32 sums of up to 2048 products in another order differ by a few 1e-6 of their norm; over 8 layers and
// the softmaxes the logits stay within 1e-4, unless a near-tie of the router flips, which the oracles avoid.
#include "support/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/state.h"
#include "model/reference.h"
#include "support/compare.h"

namespace lily {
namespace {

constexpr double tolerance = 1e-4;

std::vector<float> prefill_in_chunks(Backend& backend, State& state, std::span<const int32_t> ids, size_t chunk) {
  const size_t vocab = backend.config().vocab_size;
  std::vector<float> logits(ids.size() * vocab);
  for (size_t i = 0; i < ids.size(); i += chunk) {
    const size_t n = std::min(chunk, ids.size() - i);
    const auto done =
        backend.prefill(state, ids.subspan(i, n), WantLogits::all, std::span(logits).subspan(i * vocab, n * vocab));
    EXPECT_TRUE(done) << done.error().message();
  }
  return logits;
}

void expect_close(std::span<const float> got, std::span<const float> want, const std::string& what) {
  const test::Difference d = test::difference(got, want);
  EXPECT_TRUE(d.finite && d.relative <= tolerance) << what << ": " << d.text();
}

struct Target {
  std::string backend, isa;
};

// The reference, and the CPU backend on every instruction set that this machine has.
std::vector<Target> targets() {
  std::vector<Target> list = {{"reference", ""}};
  for (const char* isa : cpu::isa_names) {
    if (cpu::select_kernels(isa)) list.push_back({"cpu", isa});
  }
  return list;
}

using Case = std::tuple<std::string, Target>;

class OracleTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto& [name, target] = GetParam();
    LILY_NEED_ORACLE(name);
    oracle_ = test::open_oracle(name);
    BackendOptions options;
    options.isa = target.isa;
    options.exact = true;  // fidelity_test has the 16-bit path
    options.observe_layer = [this](int layer, std::span<const float> hidden) {
      if (observing_) hidden_[layer].insert(hidden_[layer].end(), hidden.begin(), hidden.end());
    };
    hidden_.resize(oracle_.checkpoint->config().num_layers() + 1);
    auto backend = Backend::load(target.backend, oracle_.checkpoint, options);
    ASSERT_TRUE(backend) << backend.error().message();
    backend_ = std::move(backend).value();
    if (!target.isa.empty()) {
      EXPECT_NE(backend_->describe().find(target.isa), std::string::npos) << "the forced path did not run";
    }
  }

  std::unique_ptr<State> state(int64_t tokens) { return backend_->make_state(tokens).value(); }

  test::Oracle oracle_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::vector<float>> hidden_;  // by layer
  bool observing_ = false;
};

TEST_P(OracleTest, LogitsAndLayersEqualTransformers) {
  const auto ids = oracle_.input_ids();
  const auto sequence = state(static_cast<int64_t>(ids.size()));
  observing_ = true;
  const std::vector<float> logits = prefill_in_chunks(*backend_, *sequence, ids, ids.size());
  const auto want = oracle_.get<float>("logits");
  const test::Difference d = test::difference(logits, want);
  std::cout << "logits: " << d.text() << "\n";
  expect_close(logits, want, "logits");
  const test::Agreement top1 = test::top1_agreement(logits, want, backend_->config().vocab_size, 1e-3f);
  EXPECT_EQ(top1.equal, top1.positions);
  EXPECT_GT(top1.positions, static_cast<int64_t>(ids.size()) * 9 / 10);
  for (size_t layer = 0; layer < hidden_.size(); ++layer) {
    const std::string name = "hidden." + std::to_string(layer);
    expect_close(hidden_[layer], oracle_.get<float>(name), name);
  }
}

TEST_P(OracleTest, ChunksAgree) {
  const auto ids = oracle_.input_ids();
  const auto want = oracle_.get<float>("logits");
  const bool slow = std::get<1>(GetParam()).backend == "reference";  // and one size shows all there is to its chunks
  for (const size_t chunk : slow ? std::vector<size_t>{7} : std::vector<size_t>{1, 7, 64}) {
    const auto sequence = state(static_cast<int64_t>(ids.size()));
    expect_close(prefill_in_chunks(*backend_, *sequence, ids, chunk), want, "chunks of " + std::to_string(chunk));
  }
}

TEST_P(OracleTest, GreedyDecodingGivesTheSameIds) {
  const auto want = oracle_.get<int32_t>("greedy_ids");
  const size_t prompt = 17;
  const auto sequence = state(static_cast<int64_t>(want.size()));
  std::vector<float> logits(backend_->config().vocab_size);
  ASSERT_TRUE(backend_->prefill(*sequence, want.first(prompt), WantLogits::last, logits));
  for (size_t i = prompt; i < want.size(); ++i) {
    const auto token = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    ASSERT_EQ(token, want[i]) << "at position " << i;
    DecodeItem item{sequence.get(), token, logits};
    if (i + 1 == want.size()) break;
    ASSERT_TRUE(backend_->decode({&item, 1}));
  }
}

TEST_P(OracleTest, RestoredEqualsKept) {
  const auto ids = oracle_.input_ids();
  const auto sequence = state(static_cast<int64_t>(ids.size()));
  const size_t cut = 50, vocab = backend_->config().vocab_size;
  prefill_in_chunks(*backend_, *sequence, ids.first(cut), cut);
  const auto snapshot = backend_->snapshot(*sequence);
  EXPECT_EQ(snapshot->position(), static_cast<int64_t>(cut));
  const std::vector<int32_t> other(ids.rbegin(), ids.rbegin() + 30);
  prefill_in_chunks(*backend_, *sequence, other, 30);
  backend_->restore(*sequence, *snapshot);
  const auto rest = prefill_in_chunks(*backend_, *sequence, ids.subspan(cut), ids.size());
  expect_close(rest, oracle_.get<float>("logits").subspan(cut * vocab), "after restore");
  backend_->reset(*sequence);
  EXPECT_EQ(sequence->position(), 0);
  expect_close(prefill_in_chunks(*backend_, *sequence, ids, 64), oracle_.get<float>("logits"), "after reset");
}

TEST_P(OracleTest, BadTokensLeaveTheStateAsItWas) {
  const auto sequence = state(8);
  std::vector<float> logits(backend_->config().vocab_size);
  const int32_t bad[] = {1, backend_->config().vocab_size};
  EXPECT_FALSE(backend_->prefill(*sequence, bad, WantLogits::last, logits));
  const int32_t negative[] = {-1};
  EXPECT_FALSE(backend_->prefill(*sequence, negative, WantLogits::last, logits));
  const std::vector<int32_t> many(9, 1);
  EXPECT_FALSE(backend_->prefill(*sequence, many, WantLogits::last, logits));
  EXPECT_EQ(sequence->position(), 0);
}

std::string case_name(const testing::TestParamInfo<Case>& param) {
  const Target& target = std::get<1>(param.param);
  return std::get<0>(param.param) + "_" + target.backend + target.isa;
}

INSTANTIATE_TEST_SUITE_P(All, OracleTest,
                         testing::Combine(testing::Values("a", "b", "f", "g"), testing::ValuesIn(targets())),
                         case_name);

// The states that a sequence leaves behind, against the stored ones: oracle layouts are in its README.
class OracleStateTest : public testing::TestWithParam<std::string> {};

// [kv_heads, tokens, head_dim] of the oracle -> [tokens, kv_heads, head_dim]
std::vector<float> by_token(std::span<const float> stored, int kv_heads, int head_dim) {
  const size_t tokens = stored.size() / (kv_heads * head_dim);
  std::vector<float> out(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    const size_t d = i % head_dim, t = i / head_dim % tokens, h = i / head_dim / tokens;
    out[(t * kv_heads + h) * head_dim + d] = stored[i];
  }
  return out;
}

// The last conv_kernel - 1 columns of [channels, conv_kernel] -> [conv_kernel - 1, channels]
std::vector<float> conv_history(std::span<const float> stored, int taps) {
  const size_t channels = stored.size() / taps;
  std::vector<float> out;
  for (int j = 1; j < taps; ++j) {
    for (size_t c = 0; c < channels; ++c) out.push_back(stored[c * taps + j]);
  }
  return out;
}

TEST_P(OracleStateTest, StatesEqualTransformers) {
  LILY_NEED_ORACLE(GetParam());
  const test::Oracle oracle = test::open_oracle(GetParam());
  const ModelConfig& config = oracle.checkpoint->config();
  const ModelWeights weights = bind_weights(*oracle.checkpoint).value();
  ReferenceState reference(config);
  reference_forward(config, weights, reference, oracle.input_ids());
  const auto backend = Backend::load("cpu", oracle.checkpoint, {.exact = true}).value();
  const auto sequence = backend->make_state(config.max_position_embeddings).value();
  ASSERT_TRUE(backend->prefill(*sequence, oracle.input_ids(), WantLogits::none, {}));
  auto& state = static_cast<cpu::CpuState&>(*sequence);

  const auto tokens = static_cast<int64_t>(oracle.input_ids().size());
  for (int i = 0; i < config.num_layers(); ++i) {
    const std::string layer = "layer." + std::to_string(i) + ".";
    if (config.layers[i] == LayerKind::linear_attention) {
      const auto conv = conv_history(oracle.get<float>(layer + "conv_states"), config.conv_kernel);
      expect_close(reference.layers[i].conv, conv, layer + "conv (reference)");
      expect_close(state.layers[i].conv, conv, layer + "conv (cpu)");
      const auto recurrent = oracle.get<float>(layer + "recurrent_states");
      expect_close(reference.layers[i].recurrent, recurrent, layer + "recurrent (reference)");
      expect_close(state.layers[i].recurrent, recurrent, layer + "recurrent (cpu)");
      continue;
    }
    const auto keys = by_token(oracle.get<float>(layer + "keys"), config.num_kv_heads, config.head_dim);
    const auto values = by_token(oracle.get<float>(layer + "values"), config.num_kv_heads, config.head_dim);
    expect_close(reference.layers[i].keys, keys, layer + "keys (reference)");
    expect_close(reference.layers[i].values, values, layer + "values (reference)");
    std::vector<float> cpu_keys, cpu_values;
    for (int64_t t = 0; t < tokens; ++t) {
      const cpu::KvBlock& block = *state.layers[i].kv[t / cpu::KvBlock::tokens];
      for (int h = 0; h < config.num_kv_heads; ++h) {
        const int64_t slot = t % cpu::KvBlock::tokens;
        for (int64_t d = 0; d < config.head_dim; ++d) {
          cpu_keys.push_back(load_as_float(block.keys(h), DType::f32, block.key_index(slot, d)));
          cpu_values.push_back(load_as_float(block.values(h), DType::f32, slot * config.head_dim + d));
        }
      }
    }
    expect_close(cpu_keys, keys, layer + "keys (cpu)");
    expect_close(cpu_values, values, layer + "values (cpu)");
  }
}

INSTANTIATE_TEST_SUITE_P(All, OracleStateTest, testing::Values("a", "b", "f", "g"));

}  // namespace
}  // namespace lily
