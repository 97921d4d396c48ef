// The spellings of tensor and module names that published checkpoints use, brought to one.
#pragma once

#include <string>
#include <string_view>

namespace lily {

enum class TensorPart {
  embedding,
  head,
  attention,
  linear_attention,
  router,
  experts,
  shared_expert,
  mlp,
  norm,
  vision,
  mtp,
  unknown
};

const char* name_of(TensorPart part);

// "model.layers.0.mlp.gate", "model.embed_tokens", "lm_head" for any of the prefixes in use:
// language_model.model.* and language_model.lm_head.* (MLX), model.language_model.* and lm_head.* (Hugging Face),
// model.* and lm_head.* (text only). Other names come back as they are.
std::string canonical_name(std::string_view name);

// The spelling of MLX checkpoints for a canonical name.
std::string published_name(std::string_view canonical);

// The part that a tensor belongs to, by its name in any spelling.
TensorPart part_of(std::string_view name);

// Vision tower and multi-token prediction: present in published checkpoints, not used.
inline bool is_skipped(TensorPart part) { return part == TensorPart::vision || part == TensorPart::mtp; }

}  // namespace lily
