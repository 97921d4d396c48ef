// Cut, overlapping and lying safetensors files, shards and indices.
#include <gtest/gtest.h>

#include "model/malformed.h"

namespace lily::test {
namespace {

// Replaces the header of model.safetensors after `change`.
Damage header(std::function<void(json&)> change) {
  return [change](const std::string& dir) {
    const std::string path = dir + "/model.safetensors", file = read_text(path);
    const auto length = load_unaligned<uint64_t>(file.data());
    json object = json::parse(file.substr(8, length));
    change(object);
    const std::string text = object.dump();
    const uint64_t new_length = text.size();
    write_text(path, std::string(reinterpret_cast<const char*>(&new_length), 8) + text + file.substr(8 + length));
  };
}
Damage bytes(std::function<void(std::string&)> change) {
  return [change](const std::string& dir) {
    std::string file = read_text(dir + "/model.safetensors");
    change(file);
    write_text(dir + "/model.safetensors", file);
  };
}
Damage index(std::function<void(json&)> change) {
  return [change](const std::string& dir) {
    json object = json::parse(read_text(dir + "/model.safetensors.index.json"));
    change(object);
    write_text(dir + "/model.safetensors.index.json", object.dump());
  };
}

std::vector<Malformed> length_cases() {
  const std::string file = "/model.safetensors", size = "131928 bytes of tensor data";
  const std::string last = "language_model.model.norm.weight", layer3 = "language_model.model.layers.3.";
  return {
      damaged("NoTensors", remove_file("model.safetensors"), {file, "cannot open: No such file or directory"}),
      damaged("EmptyFile", bytes([](std::string& f) { f.clear(); }),
              {file, "truncated: no header", "at least 8 bytes", "0 bytes"}),
      damaged("LD_02_CutInsideTheHeader", bytes([](std::string& f) { f.resize(100), f[1] = 0x10, f[0] = 0; }),
              {file, "truncated inside the header", "4104 bytes", "100 bytes (4004 bytes missing)"}),
      damaged("LD_02_HugeHeaderLength", bytes([](std::string& f) { f.replace(0, 8, 8, '\xff'); }),
              {file, "header length", "at most 100000000 bytes", "18446744073709551615 bytes"}),
      damaged("HeaderNoObject", bytes([](std::string& f) { f = std::string("\2\0\0\0\0\0\0\0[]", 10); }),
              {file, "header", "a JSON object", "an array"}),
      damaged("HeaderNoJson", bytes([](std::string& f) { f[8] = 'x'; }),
              {file, "not valid JSON", "", "a syntax error at byte 1"}),
      damaged("TensorTwice", bytes([](std::string& f) {
                f = std::string("\x1c\0\0\0\0\0\0\0", 8) + R"({"a.weight":{},"a.weight":{}})";
              }),
              {file, "duplicate JSON key", "each key once", "a.weight"}),
      damaged("LD_02_CutByOneByte", bytes([](std::string& f) { f.pop_back(); }),
              {file + ": " + last, "file truncated", size, "131927 bytes (1 bytes missing)"}),
      damaged("LD_02_CutByOnePage", bytes([](std::string& f) { f.resize(f.size() - 4096); }),
              {file + ": " + layer3 + "mlp.switch_mlp.gate_proj.biases", "file truncated", size,
               "127832 bytes (4096 bytes missing)"}),
      damaged("BytesAfterTheEnd", bytes([](std::string& f) { f += "abc"; }),
              {file, "data after the last tensor", size, "131931 bytes"}),
  };
}

std::vector<Malformed> header_cases() {
  const std::string file = "/model.safetensors", norm = "language_model.model.norm.weight";
  return {
      damaged("OffsetsBackwards", header([=](json& h) {
                h[norm]["data_offsets"] = {128, 0};
              }),
              {file + ": " + norm, "data_offsets do not fit the shape", "128 bytes for BF16 [64]", "[128, 0]"}),
      damaged("OffsetsNegative", header([=](json& h) {
                h[norm]["data_offsets"] = {-128, 0};
              }),
              {file + ": " + norm, "data_offsets", "two byte offsets", "an array"}),
      damaged("LD_02_OffsetsOutOfRange", header([=](json& h) {
                h[norm]["data_offsets"] = {uint64_t{1} << 60, (uint64_t{1} << 60) + 128};
              }),
              {file + ": " + norm, "gap before the tensor", "data at offset 131800", "offset 1152921504606846976"}),
      damaged("LD_02_OverlappingTensors", header([=](json& h) {
                h[norm]["data_offsets"] = {0, 128};
              }),
              {file + ": language_model.lm_head.weight", "overlaps the tensor before it", "data at offset 128",
               "offset 0"}),
      damaged("ShapeOverflows", header([=](json& h) {
                h[norm]["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
              }),
              {file + ": " + norm, "shape", "sizes whose product fits 63 bits", "[1099511627776,1099511627776]"}),
      damaged("NegativeShape", header([=](json& h) { h[norm]["shape"] = {-64}; }),
              {file + ": " + norm, "shape", "sizes whose product fits 63 bits", "[-64]"}),
      damaged("UnknownDtype", header([=](json& h) { h[norm]["dtype"] = "F4"; }),
              {file + ": " + norm, "unknown dtype", "a safetensors dtype", "\"F4\""}),
      damaged("EntryWithoutShape", header([=](json& h) { h[norm].erase("shape"); }),
              {file + ": " + norm, "header entry", "dtype, shape and data_offsets", "an entry without them"}),
      damaged("EntryNoObject", header([=](json& h) { h[norm] = 7; }),
              {file + ": " + norm, "header entry", "dtype, shape and data_offsets", "an entry without them"}),
  };
}

std::vector<Malformed> shard_cases() {
  const std::string index_file = "/model.safetensors.index.json";
  const std::string first = "model-00001-of-00002.safetensors", second = "model-00002-of-00002.safetensors";
  const std::string norm = "language_model.model.norm.weight";
  return {
      damaged_shards("LD_03_MissingShard", remove_file(second),
                     {index_file, "shards missing", "2 files", "1 (missing: " + second + ")"}),
      damaged_shards(
          "ShardOutsideTheFolder", index([=](json& i) { i["weight_map"][norm] = "../" + first; }),
          {index_file + ": " + norm, "shard name", "a plain .safetensors file name", "\"../" + first + "\""}),
      damaged_shards("ShardNoString", index([=](json& i) { i["weight_map"][norm] = 5; }),
                     {index_file + ": " + norm, "shard name", "a plain .safetensors file name", "5"}),
      damaged_shards("TensorNotInIndex", index([=](json& i) { i["weight_map"].erase(norm); }),
                     {"/" + first + ": " + norm, "tensor is not in the index", "", ""}),
      damaged_shards("TensorNotInShard", index([=](json& i) { i["weight_map"]["lm_head.weight"] = second; }),
                     {"/" + second + ": lm_head.weight", "tensor is in the index but not in its shard", "", ""}),
      damaged_shards("TensorInOtherShard", index([=](json& i) { i["weight_map"][norm] = second; }),
                     {"/" + first + ": " + norm, "tensor is in another shard than the index says", second, first}),
      damaged_shards("NoWeightMap", index([=](json& i) { i.erase("weight_map"); }),
                     {index_file + ": weight_map", "wrong value", "an object from tensor names to shards", "none"}),
      damaged_shards("IndexNoObject", replace_file("model.safetensors.index.json", "3"),
                     {index_file, "wrong JSON", "an object", "a number"}),
  };
}

class MalformedFile : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedFile, IsOneExactError) { expect_one_error(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, MalformedFile, all_of({length_cases(), header_cases(), shard_cases()}), name_of_case);

}  // namespace
}  // namespace lily::test
