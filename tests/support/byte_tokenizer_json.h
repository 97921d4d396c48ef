// The tokenizer.json of a tokenizer whose ids 0 to 255 are the bytes, followed by whole words and the tokens of the chat template.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lily::test {

// The printable stand-in of a byte in tokenizer.json (GPT-2's alphabet).
inline std::string byte_symbol(int byte) {
  const auto printable = [](int b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae; };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += !printable(b);
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// `words` are used where the pre-tokeniser cuts them out whole: "two", " three".
inline std::string byte_tokenizer_json(const std::vector<std::string>& words = {}) {
  nlohmann::json vocab;
  int id = 0;
  for (; id < 256; ++id) vocab[byte_symbol(id)] = id;
  for (const std::string& word : words) {
    std::string symbols;
    for (const char byte : word) symbols += byte_symbol(static_cast<unsigned char>(byte));
    vocab[symbols] = id++;
  }
  nlohmann::json added;
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"}) {
    added.push_back({{"id", id++}, {"content", text}, {"special", text[1] == '|'}, {"normalized", false}});
  }
  const nlohmann::json split = {{"type", "Split"},
                                {"pattern", {{"Regex", R"( ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+)"}}},
                                {"behavior", "Isolated"},
                                {"invert", false}};
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const nlohmann::json file = {
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}, {"ignore_merges", true}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
      {"added_tokens", added}};
  return file.dump();
}

}  // namespace lily::test
