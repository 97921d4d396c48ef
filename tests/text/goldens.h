// Golden files of the text room, written by tools/goldens.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/mapped_file.h"
#include "text/tokenizer.h"

namespace lily {

inline std::string golden_path(const std::string& name) {
  return std::string(LILY_SOURCE_DIR) + "/tests/text/goldens/" + name;
}

inline std::string read_golden(const std::string& name) {
  auto text = read_file(golden_path(name));
  EXPECT_TRUE(text) << text.error().message();
  return text ? std::move(text).value() : "null";
}

inline Tokenizer golden_tokenizer() { return Tokenizer::load(golden_path("tokenizer.json")).value(); }

}  // namespace lily
