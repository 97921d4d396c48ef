#include "model/tensor_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lily {
namespace {

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

// "layers.12.mlp.gate.weight" -> "mlp.gate.weight"; empty when it is not a layer's.
std::string_view within_layer(std::string_view name) {
  constexpr std::string_view prefix = "model.layers.";
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  const size_t digits = name.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || name[digits] != '.') return {};
  return name.substr(digits + 1);
}

}  // namespace

const char* name_of(TensorPart part) {
  switch (part) {
    case TensorPart::embedding: return "embedding";
    case TensorPart::head: return "head";
    case TensorPart::attention: return "attention";
    case TensorPart::linear_attention: return "linear_attention";
    case TensorPart::router: return "router";
    case TensorPart::experts: return "experts";
    case TensorPart::shared_expert: return "shared_expert";
    case TensorPart::mlp: return "mlp";
    case TensorPart::norm: return "norm";
    case TensorPart::vision: return "vision";
    case TensorPart::mtp: return "mtp";
    default: return "unknown";
  }
}

std::string canonical_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> spellings = {{
      {"language_model.model.", "model."},
      {"model.language_model.", "model."},
      {"language_model.lm_head", "lm_head"},
  }};
  for (const auto& [prefix, canonical] : spellings) {
    if (name.starts_with(prefix)) return std::string(canonical).append(name.substr(prefix.size()));
  }
  return std::string(name);
}

std::string published_name(std::string_view canonical) { return std::string("language_model.").append(canonical); }

TensorPart part_of(std::string_view name) {
  if (starts_with_any(name, {"vision_tower.", "model.vision_tower.", "model.visual.", "visual."}))
    return TensorPart::vision;
  if (starts_with_any(name, {"mtp.", "language_model.mtp.", "model.mtp."})) return TensorPart::mtp;
  const std::string canonical = canonical_name(name);
  if (canonical.starts_with("model.embed_tokens")) return TensorPart::embedding;
  if (canonical.starts_with("lm_head")) return TensorPart::head;
  if (canonical.starts_with("model.norm")) return TensorPart::norm;
  const std::string_view module = within_layer(canonical);
  if (module.find("norm.") != std::string_view::npos) return TensorPart::norm;
  if (module.starts_with("self_attn.")) return TensorPart::attention;
  if (module.starts_with("linear_attn.")) return TensorPart::linear_attention;
  if (starts_with_any(module, {"mlp.gate.", "mlp.shared_expert_gate."})) return TensorPart::router;
  if (starts_with_any(module, {"mlp.switch_mlp.", "mlp.experts."})) return TensorPart::experts;
  if (module.starts_with("mlp.shared_expert.")) return TensorPart::shared_expert;
  if (starts_with_any(module, {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})) return TensorPart::mlp;
  return TensorPart::unknown;
}

}  // namespace lily
