// A checkpoint opened and bound; a failure of either fails the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/checkpoint.h"
#include "model/weights.h"

namespace lily::test {

struct BoundModel {
  std::unique_ptr<Checkpoint> checkpoint;
  ModelWeights weights;
};

inline BoundModel open_and_bind(const std::string& directory) {
  auto checkpoint = Checkpoint::open(directory);
  if (!checkpoint) return ADD_FAILURE() << checkpoint.error().message(), BoundModel{};
  BoundModel bound{std::make_unique<Checkpoint>(std::move(*checkpoint)), {}};
  auto weights = bind_weights(*bound.checkpoint);
  if (!weights) return ADD_FAILURE() << weights.error().message(), BoundModel{};
  bound.weights = std::move(*weights);
  return bound;
}

}  // namespace lily::test
