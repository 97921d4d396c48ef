// The seam between the runtime and what computes. Above it nothing knows kernels or devices.
#pragma once

#include <cstddef>
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

// A sequence as it was at one position. It shares the KV blocks that it was taken with, so that it costs little more than
// the recurrent state; it outlives the State, and any State of the backend can go on from it.
class Snapshot {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  virtual ~Snapshot() = default;
  int64_t position() const { return position_; }

  // Writes the recurrent state and the KV rows from `from` on (an earlier position of the same sequence), for
  // Backend::read_snapshot.
  virtual void write(int64_t from, const Sink& sink) const = 0;

 protected:
  int64_t position_ = 0;
};

// What sequences cost in memory, in bytes.
struct StateCost {
  size_t fixed;      // of a state or snapshot: the recurrent part
  size_t per_token;  // of KV
};

// Called with the input of every layer, and after the last layer with the final norm's output
// (layer == number of layers): hidden [tokens, hidden_size]. For tests.
using LayerObserver = std::function<void(int layer, std::span<const float> hidden)>;

struct BackendOptions {
  int threads = 0;              // 0: one a core
  bool exact = false;           // CPU: float32 activations and KV cache instead of 16-bit ones
  std::string isa;              // CPU, for tests: "amx", "avx512", "avx2", "neon", "portable"; empty: the best there is
  LayerObserver observe_layer;  // empty: none
  std::function<void(size_t done, size_t total)> on_upload;  // bytes of weights that went to a device
};

enum class WantLogits { none, last, all };

struct DecodeItem {
  State* state;
  int32_t token;
  std::span<float> logits;  // [vocab], filled
};

// What a device can sample by itself; runtime/sampler.h says what the numbers mean. At most 64 candidates are looked at.
struct DeviceSampling {
  float temperature = 0;  // 0: greedy
  uint32_t top_k = 1;     // 0: as many as there may be
  float top_p = 1, min_p = 0;
  uint64_t seed = 0;
  uint32_t tokens = 0;  // ids from there on are never sampled

  bool operator==(const DeviceSampling&) const = default;
};

// What a backend's machine can do at best, measured: the yardstick of `lily bench`.
struct Peak {
  double bytes_per_second = 0;  // read from memory that no cache holds
  double flops_per_second = 0;  // of
  std::string arithmetic;       // "float32 FMA (avx512, 2 threads)", "bf16 tiles"
};

// Something that makes a backend fast and that it can do without, to measure what it is worth.
struct Mechanism {
  std::string name;
  bool of_prefill, of_decode;
  int64_t most_tokens = 0;  // of a prompt that is worth waiting for without it; 0: any
};

class Backend {
 public:
  virtual ~Backend() = default;

  // `name`: "auto", "cpu", "reference", or a device of backend/gpu/devices.h. The checkpoint must stay alive as long as the backend.
  static Result<std::unique_ptr<Backend>> load(const std::string& name, std::shared_ptr<const Checkpoint> checkpoint,
                                               const BackendOptions& options = {});

  virtual const ModelConfig& config() const = 0;
  virtual std::string describe() const = 0;       // "cpu (avx512, 2 threads)"
  virtual int64_t chunk() const { return 1024; }  // tokens of a prefill call that keep it busy and its caller informed

  virtual Result<std::unique_ptr<State>> make_state(int64_t max_tokens) = 0;

  // Appends tokens to the state, in any chunk lengths. logits: empty for none, [vocab] for last,
  // [tokens, vocab] for all. An id outside the vocabulary or a full state is an error and leaves the state as it was.
  virtual Result<void> prefill(State& state, std::span<const int32_t> tokens, WantLogits want,
                               std::span<float> logits) = 0;

  // One step of every item; the states are distinct. An error leaves all of them as they were. Logits may be empty.
  virtual Result<void> decode(std::span<DecodeItem> batch) = 0;

  // Steps whose tokens the device samples, the next one under way before on_token has seen the last: from `token` on until
  // on_token says false or the state is full. The state then holds all tokens but the last one that on_token saw.
  virtual bool samples() const { return false; }
  virtual Result<void> decode_ahead(State& state, int32_t token, const DeviceSampling& sampling,
                                    const std::function<bool(int32_t)>& on_token);

  virtual std::unique_ptr<Snapshot> snapshot(const State& state) = 0;  // null: the device has no memory left
  virtual void restore(State& state, const Snapshot& snapshot) = 0;
  virtual void reset(State& state) = 0;  // position 0

  // What Snapshot::write wrote, at `position`, from `base`'s position on (null: 0). An error if the sizes do not fit.
  virtual Result<std::unique_ptr<Snapshot>> read_snapshot(const Snapshot* base, int64_t position,
                                                          std::span<const std::byte> data) = 0;

  virtual Result<Peak> measure_peak() = 0;  // takes about a second

  virtual std::vector<Mechanism> mechanisms() const { return {}; }
  // From the next call on everything is computed without that one; "": with all of them again. One of mechanisms().
  virtual Result<void> without(const std::string& mechanism);
  virtual size_t temporary_bytes() const {
    return 0;
  }  // that calls since the last `without` needed for intermediate results

  virtual StateCost state_cost() const = 0;
  virtual size_t state_bytes() const = 0;  // of all states and snapshots that live, shared blocks counted once
};

}  // namespace lily
