// Writes what config.h reads.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/config.h"

namespace lily {

// The `quantization` block of config.json.
nlohmann::json quantization_json(const QuantizationConfig& quantization);

// config.json of `config`; parse_config gives it back.
std::string config_json(const ModelConfig& config);

}  // namespace lily
