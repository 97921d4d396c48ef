// A model ready to run, as the commands need it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "base/result.h"
#include "cli/options.h"
#include "runtime/sampler.h"
#include "text/tokenizer.h"

namespace lily::cli {

struct Engine {
  std::string name;        // of the model's directory
  int64_t parameters = 0;  // that the text model uses
  std::shared_ptr<const Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::optional<Tokenizer> tokenizer;
  SamplingParams sampling;  // the model's defaults
  int64_t chunk = 0;        // tokens of one prefill call

  const ModelConfig& config() const { return backend->config(); }
};

enum class NeedTokenizer { no, if_present, yes };

// An error where the template's markers are no tokens of this model: a reply would be nonsense. A line on stderr where
// the model comes with a template of another family, since ours is used all the same.
Result<void> check_chat(const Engine& engine);

Result<Engine> load_engine(const ModelOptions& options, NeedTokenizer need);

}  // namespace lily::cli
