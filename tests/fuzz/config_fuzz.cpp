// Any text: parse_config gives an error or a config whose derived sizes are sane.
#include <cstdlib>
#include <string_view>

#include "model/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = lily::parse_config({reinterpret_cast<const char*>(data), size}, "c");
  if (!config) {
    if (config.error().message().empty()) std::abort();
    return 0;
  }
  const lily::ModelConfig& c = *config;
  const bool sane = c.hidden_size > 0 && c.vocab_size > 0 && c.num_layers() > 0 && 2 * c.query_size() > 0 &&
                    c.kv_size() > 0 && c.conv_channels() > 0 && c.conv_kernel >= 2 && c.rotary_dim >= 2 &&
                    c.rotary_dim % 2 == 0 && c.rotary_dim <= c.head_dim &&
                    c.is_moe() == (c.model_type == "qwen3_5_moe") &&
                    (c.is_moe() ? c.experts_per_token <= c.num_experts && c.expert_size > 0 : c.mlp_size > 0);
  if (!sane) std::abort();
  return 0;
}
