// The bundled model, loaded once a program.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "text/tokenizer.h"

namespace lily::test {

struct TinyModel {
  std::shared_ptr<const Checkpoint> checkpoint;
  Tokenizer tokenizer;
  std::unique_ptr<Backend> backend;
};

inline TinyModel& tiny_model() {
  static TinyModel model = [] {
    const std::string directory = std::string(LILY_SOURCE_DIR) + "/models/tiny";
    auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(directory).value());
    Tokenizer tokenizer = Tokenizer::load(directory + "/tokenizer.json").value();
    auto backend = std::move(Backend::load("cpu", checkpoint)).value();
    return TinyModel{std::move(checkpoint), std::move(tokenizer), std::move(backend)};
  }();
  return model;
}

}  // namespace lily::test
