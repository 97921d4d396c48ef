// Files that are no tokenizer, or one that Lily would read wrongly: an error that names the place, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>

#include "goldens.h"

namespace lily {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const std::string& valid_text() {
  static const std::string text = read_golden("tokenizer.json");
  return text;
}

Json valid_file() {
  static const Json file = Json::parse(valid_text());
  return file;
}

struct Fault {
  const char* name;
  std::function<void(Json&)> make;
  const char* message;  // what the error must say
};

Json& split(Json& file) { return file["pre_tokenizer"]["pretokenizers"][0]; }
Json& byte_level(Json& file) { return file["pre_tokenizer"]["pretokenizers"][1]; }

const Fault faults[] = {
    {"null", [](Json& f) { f = nullptr; }, "expected a JSON object"},
    {"array", [](Json& f) { f = Json::array({f}); }, "expected a JSON object"},
    {"empty object", [](Json& f) { f = Json::object(); }, "model: expected an object, got null"},
    {"no model", [](Json& f) { f.erase("model"); }, "model: expected an object"},
    {"model is a list", [](Json& f) { f["model"] = Json::array(); }, "model: expected an object, got []"},
    {"unigram", [](Json& f) { f["model"]["type"] = "Unigram"; }, "model.type: expected \"BPE\", got \"Unigram\""},
    {"dropout", [](Json& f) { f["model"]["dropout"] = 0.1; }, "model.dropout"},
    {"unknown token", [](Json& f) { f["model"]["unk_token"] = "<unk>"; }, "model.unk_token"},
    {"word prefix", [](Json& f) { f["model"]["continuing_subword_prefix"] = "##"; }, "continuing_subword_prefix"},
    {"word suffix", [](Json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
    {"byte fallback", [](Json& f) { f["model"]["byte_fallback"] = true; }, "model.byte_fallback"},
    {"ignore_merges", [](Json& f) { f["model"]["ignore_merges"] = 1; }, "model.ignore_merges"},

    {"no vocabulary", [](Json& f) { f["model"].erase("vocab"); }, "model.vocab: expected an object, got null"},
    {"vocabulary is a list", [](Json& f) { f["model"]["vocab"] = {"a", 1}; }, "model.vocab: expected an object"},
    {"empty vocabulary", [](Json& f) { f["model"]["vocab"] = Json::object(); }, "expected all 256"},
    {"a byte is missing", [](Json& f) { f["model"]["vocab"].erase("Ġ"); }, "none for 32"},
    {"id is a string", [](Json& f) { f["model"]["vocab"]["the"] = "5"; }, "id of \"the\": expected an integer"},
    {"id is a fraction", [](Json& f) { f["model"]["vocab"]["the"] = 5.5; }, "id of \"the\": expected an integer"},
    {"id is null", [](Json& f) { f["model"]["vocab"]["the"] = nullptr; }, "id of \"the\": expected an integer"},
    {"id is an object", [](Json& f) { f["model"]["vocab"]["the"] = f; }, "id of \"the\": expected an integer"},
    {"negative id", [](Json& f) { f["model"]["vocab"]["the"] = -1; }, "id of \"the\": expected 0 to 4194303, got -1"},
    {"huge id", [](Json& f) { f["model"]["vocab"]["the"] = 1 << 30; }, "got 1073741824"},
    {"larger id than 64 bits", [](Json& f) { f["model"]["vocab"]["the"] = ~uint64_t{0}; }, "expected an integer"},
    {"one id for two tokens", [](Json& f) { f["model"]["vocab"]["the"] = 65; }, "id 65 stands for both"},
    {"one token twice", [](Json& f) { f["model"]["vocab"]["Ġ "] = 5000; f["model"]["vocab"]["Ġ\u0020"] = 5000;
                                      f["model"]["vocab"]["ä¸Ń"] = 5001; f["model"]["vocab"]["中"] = 5002; }, "two ids"},
    {"empty token", [](Json& f) { f["model"]["vocab"][""] = 5000; }, "empty token"},

    {"no merges", [](Json& f) { f["model"].erase("merges"); }, "model.merges: expected an array, got null"},
    {"merges are an object", [](Json& f) { f["model"]["merges"] = Json::object(); }, "model.merges: expected an array"},
    {"merge of an unknown token", [](Json& f) { f["model"]["merges"][3] = {"qq", "zz"}; },
     "model.merges[3]: \"qq\" is not in model.vocab"},
    {"merge into an unknown token", [](Json& f) { f["model"]["merges"][3] = {"Q", "Z"}; },
     "model.merges[3]: \"QZ\" is not in model.vocab"},
    {"merge of one", [](Json& f) { f["model"]["merges"][3] = Json::array({"a"}); }, "model.merges[3]: expected two tokens"},
    {"merge of three", [](Json& f) { f["model"]["merges"][3] = {"a", "b", "c"}; }, "model.merges[3]: expected two tokens"},
    {"merge of numbers", [](Json& f) { f["model"]["merges"][3] = {1, 2}; }, "model.merges[3]: expected two tokens"},
    {"merge is a number", [](Json& f) { f["model"]["merges"][3] = 7; }, "model.merges[3]: expected two tokens"},
    {"merge line of one", [](Json& f) { f["model"]["merges"][3] = "ab"; }, "model.merges[3]: expected two tokens"},
    {"merge line of three", [](Json& f) { f["model"]["merges"][3] = "a b c"; }, "model.merges[3]: expected two tokens"},
    {"merge of nothing", [](Json& f) { f["model"]["merges"][3] = {"", ""}; }, "model.merges[3]: \"\" is not in"},
    {"merge makes an added token",
     [](Json& f) {
       f["added_tokens"].push_back({{"id", f["model"]["vocab"]["the"]}, {"content", "the"}, {"normalized", false}});
     },
     "makes the added token \"the\""},

    {"added tokens are an object", [](Json& f) { f["added_tokens"] = Json::object(); }, "added_tokens: expected an array"},
    {"added token is a string", [](Json& f) { f["added_tokens"][2] = "<|x|>"; }, "added_tokens[2].id"},
    {"added token without id", [](Json& f) { f["added_tokens"][2].erase("id"); }, "added_tokens[2].id: expected an integer"},
    {"added token with negative id", [](Json& f) { f["added_tokens"][2]["id"] = -7; }, "added_tokens[2].id"},
    {"added token with huge id", [](Json& f) { f["added_tokens"][2]["id"] = ~uint64_t{0}; }, "added_tokens[2].id"},
    {"added token without content", [](Json& f) { f["added_tokens"][2].erase("content"); }, "added_tokens[2].content"},
    {"empty added token", [](Json& f) { f["added_tokens"][2]["content"] = ""; }, "added_tokens[2].content"},
    {"added token strips", [](Json& f) { f["added_tokens"][2]["lstrip"] = true; }, "added_tokens[2].lstrip"},
    {"added token is a word", [](Json& f) { f["added_tokens"][2]["single_word"] = true; }, "added_tokens[2].single_word"},
    {"added token is normalised", [](Json& f) { f["added_tokens"][2]["normalized"] = true; }, "added_tokens[2].normalized"},
    {"special is a number", [](Json& f) { f["added_tokens"][2]["special"] = 1; }, "added_tokens[2].special"},
    {"added token twice", [](Json& f) { f["added_tokens"].push_back(f["added_tokens"][2]); }, "is added twice"},
    {"added token with two ids", [](Json& f) { f["added_tokens"][2]["content"] = "the"; }, "has two ids"},
    {"added token on a taken id", [](Json& f) { f["added_tokens"][2]["id"] = 300; }, "id 300 stands for both"},
    {"added token is a byte",
     [](Json& f) { f["added_tokens"].push_back({{"id", f["model"]["vocab"]["!"]}, {"content", "!"}, {"normalized", false}}); },
     "is a byte of ordinary text"},

    {"normaliser", [](Json& f) { f["normalizer"]["type"] = "NFKC"; }, "normalizer.type: expected \"NFC\", got \"NFKC\""},
    {"normaliser is a string", [](Json& f) { f["normalizer"] = "NFC"; }, "normalizer.type"},
    {"no pre-tokeniser", [](Json& f) { f["pre_tokenizer"] = nullptr; }, "pre_tokenizer.type"},
    {"other pre-tokeniser", [](Json& f) { f["pre_tokenizer"]["type"] = "Whitespace"; }, "pre_tokenizer.type"},
    {"no steps", [](Json& f) { f["pre_tokenizer"].erase("pretokenizers"); }, "pre_tokenizer.pretokenizers"},
    {"one step", [](Json& f) { f["pre_tokenizer"]["pretokenizers"].erase(1); }, "pre_tokenizer.pretokenizers"},
    {"other step", [](Json& f) { split(f)["type"] = "Digits"; }, "pre_tokenizer.pretokenizers[0].type"},
    {"split removes", [](Json& f) { split(f)["behavior"] = "Removed"; }, "pre_tokenizer.pretokenizers[0].behavior"},
    {"split inverts", [](Json& f) { split(f)["invert"] = true; }, "pre_tokenizer.pretokenizers[0].invert"},
    {"split at a string", [](Json& f) { split(f)["pattern"] = {{"String", " "}}; }, "pretokenizers[0].pattern.Regex"},
    {"bad expression", [](Json& f) { split(f)["pattern"]["Regex"] = "(a"; }, "missing closing parenthesis"},
    {"expression of \\C", [](Json& f) { split(f)["pattern"]["Regex"] = "\\C"; }, "bad regular expression"},
    {"expression too deep", [](Json& f) { split(f)["pattern"]["Regex"] = std::string(100000, '('); }, "bad regular"},
    {"expression too large", [](Json& f) { split(f)["pattern"]["Regex"] = "((a{1,900}){1,900}){1,900}"; }, "bad regular"},
    {"prefix space", [](Json& f) { byte_level(f)["add_prefix_space"] = true; }, "[1].add_prefix_space"},
    {"second expression", [](Json& f) { byte_level(f)["use_regex"] = true; }, "[1].use_regex: expected false, got true"},
    {"other decoder", [](Json& f) { f["decoder"] = {{"type", "Metaspace"}}; }, "decoder.type"},
    {"post-processor that adds tokens", [](Json& f) { f["post_processor"] = {{"type", "TemplateProcessing"}}; },
     "post_processor.type"},
};

TEST(TokenizerFile, FaultsAreErrorsThatNameThePlace) {
  for (const Fault& fault : faults) {
    Json file = valid_file();
    fault.make(file);
    const auto tokenizer = Tokenizer::parse(file.dump(), "dir/tokenizer.json");
    ASSERT_FALSE(tokenizer) << fault.name;
    EXPECT_EQ(tokenizer.error().where, "dir/tokenizer.json") << fault.name;
    EXPECT_THAT(tokenizer.error().message(), HasSubstr(fault.message)) << fault.name;
    EXPECT_LT(tokenizer.error().message().size(), 400u) << fault.name;
  }
}

TEST(TokenizerFile, AbsentOptionalFieldsAreFine) {
  Json file = valid_file();
  for (const char* name : {"version", "truncation", "padding", "post_processor", "decoder", "normalizer"}) file.erase(name);
  for (const char* name : {"dropout", "unk_token", "byte_fallback", "ignore_merges", "fuse_unk"}) file["model"].erase(name);
  EXPECT_TRUE(Tokenizer::parse(file.dump(), "short"));
  file.erase("added_tokens");
  EXPECT_TRUE(Tokenizer::parse(file.dump(), "shorter"));
}

void expect_malformed(const std::string& text, const char* message) {
  const auto tokenizer = Tokenizer::parse(text, "file");
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message(), HasSubstr(message));
}

TEST(TokenizerFile, MalformedJson) {
  const std::string& text = valid_text();
  expect_malformed("", "expected a JSON object");
  expect_malformed("tokenizer", "expected a JSON object");
  expect_malformed(text + "x", "malformed JSON at byte");
  expect_malformed(text.substr(0, text.size() - 1), "the end of the file");
  expect_malformed("{\"model\": }", "malformed JSON");
  expect_malformed("{\"model\" {}}", "malformed JSON at byte 9");
  expect_malformed("{model: {}}", "malformed JSON at byte 1");
  expect_malformed("{\"a\": 1,, }", "malformed JSON");
  expect_malformed("{\"a\": [1}, \"b\": 2]}", "malformed JSON in \"a\"");
  expect_malformed("{\"a\": 01}", "malformed JSON in \"a\"");
  expect_malformed("{\"a\": \"\xFF\"}", "malformed JSON in \"a\"");
  expect_malformed("{\"a\": 1, \"a\": 1}", "\"a\" stands twice");
  expect_malformed("{\"model\": {}, \"model\": {}}", "\"model\" stands twice");
  expect_malformed("{\"model\": {\"vocab\": {}, \"vocab\": {}}}", "\"vocab\" stands twice");
  expect_malformed("{\"model\": {\"vocab\": {5: 5}}}", "malformed JSON at byte");
  expect_malformed("{\"model\": {\"vocab\": {\"a\\ud800\": 5}}}", "malformed JSON at byte");
  expect_malformed("{\"model\": {\"vocab\": {\"a\x01\": 5}}}", "malformed JSON at byte");
  expect_malformed("{\"model\": {\"vocab\": {\"a\xC4\": 5}}}", "not UTF-8");
  expect_malformed("{\"model\": {\"merges\": [\"a\xFF b\"]}}", "model.merges[0]");
}

TEST(TokenizerFile, DeepNesting) {
  for (const std::string open : {"[", "{\"a\":"}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += open;
    for (const char* before : {"", "{\"a\":", "{\"model\":{\"b\":", "{\"model\":{\"vocab\":{\"a\":", "{\"model\":{\"merges\":["}) {
      EXPECT_FALSE(Tokenizer::parse(before + deep, "deep"));
    }
  }
}

// A download that broke off anywhere.
TEST(TokenizerFile, EveryTruncationIsAnError) {
  const std::string& text = valid_text();
  const size_t model = text.find("\"vocab\"");
  for (size_t size = 0; size < text.size(); size += (size < 6000 || (size > model && size < model + 300)) ? 1 : 997) {
    EXPECT_FALSE(Tokenizer::parse(std::string_view(text).substr(0, size), "cut")) << size;
  }
}

TEST(TokenizerFile, MissingFile) {
  const auto tokenizer = Tokenizer::load("/nowhere/tokenizer.json");
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message(), HasSubstr("/nowhere/tokenizer.json"));
}

}  // namespace
}  // namespace lily
