// The seam between the runtime and what computes. Above it nothing knows kernels or devices.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"

namespace lily {

// One sequence: KV cache of the full-attention layers, convolution and recurrent state of the linear ones.
class State {
 public:
  virtual ~State() = default;
  int64_t position() const { return position_; }      // tokens seen
  int64_t max_tokens() const { return max_tokens_; }  // capacity of the KV cache

 protected:
  int64_t position_ = 0;
  int64_t max_tokens_ = 0;
};

// What cannot be rewound, saved at one position. KV rows up to that position stay in the State they came from.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  int64_t position() const { return position_; }
  virtual size_t bytes() const = 0;

 protected:
  int64_t position_ = 0;
};

// Called with the input of every layer, and after the last layer with the final norm's output
// (layer == number of layers): hidden [tokens, hidden_size]. For tests.
using LayerObserver = std::function<void(int layer, std::span<const float> hidden)>;

struct BackendOptions {
  int threads = 0;              // 0: one a core
  bool exact = false;           // CPU: float32 activations and KV cache instead of 16-bit ones
  std::string isa;              // CPU, for tests: "amx", "avx512", "avx2", "neon", "portable"; empty: the best there is
  LayerObserver observe_layer;  // empty: none
};

enum class WantLogits { none, last, all };

struct DecodeItem {
  State* state;
  int32_t token;
  std::span<float> logits;  // [vocab], filled
};

class Backend {
 public:
  virtual ~Backend() = default;

  // `name`: "auto", "cpu" or "reference". The checkpoint must stay alive as long as the backend.
  static Result<std::unique_ptr<Backend>> load(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                                               const BackendOptions& options = {});

  virtual const ModelConfig& config() const = 0;
  virtual std::string describe() const = 0;  // "cpu (avx512, 2 threads)"

  virtual Result<std::unique_ptr<State>> make_state(int64_t max_tokens) = 0;

  // Appends tokens to the state, in any chunk lengths. logits: empty for none, [vocab] for last,
  // [tokens, vocab] for all. An id outside the vocabulary or a full state is an error and leaves the state as it was.
  virtual Result<void> prefill(State& state, std::span<const int32_t> tokens, WantLogits want,
                               std::span<float> logits) = 0;

  // One step of every item; the states are distinct.
  virtual Result<void> decode(std::span<DecodeItem> batch) = 0;

  virtual std::unique_ptr<Snapshot> snapshot(const State& state) = 0;
  // Back to the snapshot's position. The state must be the one it was taken from, not rewound below it since.
  virtual void restore(State& state, const Snapshot& snapshot) = 0;
  virtual void reset(State& state) = 0;  // position 0
};

}  // namespace lily
