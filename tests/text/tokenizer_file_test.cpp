// Files that are no tokenizer, or one that Lily would read wrongly: an error that names the place, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

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
  const char* place;    // JSON pointer
  const char* value;    // JSON; null: the place is removed
  const char* message;  // what the error must say
};

#define STEPS "/pre_tokenizer/pretokenizers"

const Fault faults[] = {
    {"", "[]", "expected a JSON object"},
    {"", "null", "expected a JSON object"},
    {"", "{}", "model: expected an object, got null"},

    {"/model", nullptr, "model: expected an object"},
    {"/model", "[]", "model: expected an object, got []"},
    {"/model/type", R"("Unigram")", R"(model.type: expected "BPE", got "Unigram")"},
    {"/model/dropout", "0.1", "model.dropout"},
    {"/model/unk_token", R"("<unk>")", "model.unk_token"},
    {"/model/continuing_subword_prefix", R"("##")", "model.continuing_subword_prefix"},
    {"/model/end_of_word_suffix", R"("</w>")", "model.end_of_word_suffix"},
    {"/model/byte_fallback", "true", "model.byte_fallback"},
    {"/model/ignore_merges", "1", "model.ignore_merges: expected null or false or true, got 1"},

    {"/model/vocab", nullptr, "model.vocab: expected an object, got null"},
    {"/model/vocab", R"(["a", 1])", "model.vocab: expected an object"},
    {"/model/vocab", "{}", "model.vocab: no token for one byte: expected all 256"},
    {"/model/vocab/Ġ", nullptr, "none for 32"},
    {"/model/vocab/the", R"("5")", R"(id of "the": expected an integer)"},
    {"/model/vocab/the", "5.5", R"(id of "the": expected an integer, got "5.5")"},
    {"/model/vocab/the", "null", R"(id of "the": expected an integer)"},
    {"/model/vocab/the", R"({"a": [1]})", R"(id of "the": expected an integer)"},
    {"/model/vocab/the", "-1", R"(id of "the": expected 0 to 4194303, got -1)"},
    {"/model/vocab/the", "1073741824", "got 1073741824"},
    {"/model/vocab/the", "18446744073709551615", "expected an integer"},
    {"/model/vocab/the", "65", "id 65 stands for both"},
    {"/model/vocab/", "5000", "empty token"},
    {"/model/vocab/灯", "5000", R"("灯" has two ids)"},  // it also stands there in the byte alphabet

    {"/model/merges", nullptr, "model.merges: expected an array, got null"},
    {"/model/merges", "{}", "model.merges: expected an array"},
    {"/model/merges/3", R"(["qq", "zz"])", R"(model.merges[3]: expected tokens of model.vocab, got "qq")"},
    {"/model/merges/3", R"(["Q", "Z"])", R"(model.merges[3]: expected tokens of model.vocab, got "QZ")"},
    {"/model/merges/3", R"(["", ""])", R"(model.merges[3]: expected tokens of model.vocab, got "")"},
    {"/model/merges/3", R"(["a"])", "model.merges[3]: expected two tokens"},
    {"/model/merges/3", R"(["a", "b", "c"])", "model.merges[3]: expected two tokens"},
    {"/model/merges/3", "[1, 2]", "model.merges[3]: expected two tokens"},
    {"/model/merges/3", "7", "model.merges[3]: expected two tokens"},
    {"/model/merges/3", R"("ab")", "model.merges[3]: expected two tokens"},
    {"/model/merges/3", R"("a b c")", "model.merges[3]: expected two tokens"},

    {"/added_tokens", "{}", "added_tokens: expected an array"},
    {"/added_tokens/2", R"("<|x|>")", "added_tokens[2].id"},
    {"/added_tokens/2/id", nullptr, "added_tokens[2].id: expected an integer from 0 to 4194303, got null"},
    {"/added_tokens/2/id", "-7", "added_tokens[2].id"},
    {"/added_tokens/2/id", "18446744073709551615", "added_tokens[2].id"},
    {"/added_tokens/2/id", "300", "id 300 stands for both"},
    {"/added_tokens/2/content", nullptr, "added_tokens[2].content"},
    {"/added_tokens/2/content", R"("")", "added_tokens[2].content"},
    {"/added_tokens/2/content", R"("the")", R"("the" has two ids)"},
    {"/added_tokens/2/content", R"("<|im_start|>")", "has two ids"},
    {"/added_tokens/2/lstrip", "true", "added_tokens[2].lstrip: expected false or null, got true"},
    {"/added_tokens/2/rstrip", "true", "added_tokens[2].rstrip"},
    {"/added_tokens/2/single_word", "true", "added_tokens[2].single_word"},
    {"/added_tokens/2/normalized", "true", "added_tokens[2].normalized"},
    {"/added_tokens/2/special", "1", "added_tokens[2].special"},

    {"/normalizer/type", R"("NFKC")", R"(normalizer.type: expected "NFC", got "NFKC")"},
    {"/normalizer", R"("NFC")", "normalizer.type"},
    {"/pre_tokenizer", "null", "pre_tokenizer.type"},
    {"/pre_tokenizer/type", R"("Whitespace")", R"(pre_tokenizer.type: expected "Sequence" or "ByteLevel")"},
    {STEPS, nullptr, "pre_tokenizer.pretokenizers: expected a Split and a ByteLevel"},
    {STEPS "/1", nullptr, "pre_tokenizer.pretokenizers"},
    {STEPS "/0/type", R"("Digits")", "pre_tokenizer.pretokenizers[0].type"},
    {STEPS "/0/behavior", R"("Removed")", "pre_tokenizer.pretokenizers[0].behavior"},
    {STEPS "/0/invert", "true", "pre_tokenizer.pretokenizers[0].invert"},
    {STEPS "/0/pattern", R"({"String": " "})", "pre_tokenizer.pretokenizers[0].pattern.Regex"},
    {STEPS "/0/pattern/Regex", R"("(a")", "missing closing parenthesis"},
    {STEPS "/0/pattern/Regex", R"("\\C")", "bad regular expression"},
    {STEPS "/0/pattern/Regex", R"("((a{1,900}){1,900}){1,900}")", "bad regular expression"},
    {STEPS "/1/add_prefix_space", "true", "pre_tokenizer.pretokenizers[1].add_prefix_space"},
    {STEPS "/1/use_regex", "true", "pre_tokenizer.pretokenizers[1].use_regex: expected false, got true"},
    {"/decoder/type", R"("Metaspace")", "decoder.type"},
    {"/post_processor", R"({"type": "TemplateProcessing"})", "post_processor.type"},
};

void expect_error(const Json& file, const char* message, const std::string& fault) {
  const auto tokenizer = Tokenizer::parse(file.dump(), "dir/tokenizer.json");
  ASSERT_FALSE(tokenizer) << fault;
  EXPECT_EQ(tokenizer.error().where, "dir/tokenizer.json") << fault;
  EXPECT_THAT(tokenizer.error().message(), HasSubstr(message)) << fault;
  EXPECT_LT(tokenizer.error().message().size(), 400u) << fault;
}

TEST(TokenizerFile, FaultsAreErrorsThatNameThePlace) {
  for (const auto& [place, value, message] : faults) {
    Json file = valid_file();
    if (value) {
      file[Json::json_pointer(place)] = Json::parse(value);
    } else {
      file = file.patch({{{"op", "remove"}, {"path", place}}});
    }
    expect_error(file, message, std::string(place) + " = " + (value ? value : "removed"));
  }
}

// Else message text could become them.
TEST(TokenizerFile, AddedTokensAreNotMadeOfOrdinaryText) {
  for (const auto& [content, message] :
       {std::pair{"the", "makes the added token \"the\""}, {"!", "is a byte of ordinary"}}) {
    Json file = valid_file();
    file["added_tokens"].push_back(
        {{"id", file["model"]["vocab"][content]}, {"content", content}, {"normalized", false}});
    expect_error(file, message, content);
  }
}

TEST(TokenizerFile, AddedTokensStandOnce) {
  Json file = valid_file();
  file["added_tokens"].push_back(file["added_tokens"][2]);
  expect_error(file, "is added twice", "twice");
}

TEST(TokenizerFile, DeepExpression) {
  Json file = valid_file();
  file[Json::json_pointer(STEPS "/0/pattern/Regex")] = std::string(100000, '(');
  expect_error(file, "bad regular expression", "deep");
}

TEST(TokenizerFile, AbsentOptionalFieldsAreFine) {
  Json file = valid_file();
  for (const char* name : {"version", "truncation", "padding", "post_processor", "decoder", "normalizer"})
    file.erase(name);
  for (const char* name : {"dropout", "unk_token", "byte_fallback", "ignore_merges", "fuse_unk"})
    file["model"].erase(name);
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
  for (const auto& [open, close] : {std::pair{"[", "]"}, {"{\"a\":", "}"}}) {
    std::string deep, end;
    for (int i = 0; i < 100000; ++i) deep += open, end += close;
    for (const std::string before :
         {"", "{\"a\":", "{\"model\":{\"type\":", "{\"model\":{\"vocab\":{\"a\":", "{\"model\":{\"merges\":["}) {
      EXPECT_FALSE(Tokenizer::parse(before + deep, "open"));
      EXPECT_FALSE(Tokenizer::parse(before + deep + "1" + end + "}}", "closed"));
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
