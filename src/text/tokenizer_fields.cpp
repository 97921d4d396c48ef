#include "text/tokenizer_fields.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "text/tokenizer_json.h"

namespace lily {
namespace {

using Json = nlohmann::json;

// The expression behind ByteLevel's use_regex.
constexpr const char* gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A value of the file with the path that leads to it. An absent field reads as null.
class Field {
 public:
  Field(const Json& value, std::string path, const std::string& where)
      : value_(&value), path_(std::move(path)), where_(&where) {}

  Field operator[](const char* name) const {
    static const Json absent;
    const bool present = value_->is_object() && value_->contains(name);
    return {present ? (*value_)[name] : absent, path_.empty() ? name : path_ + "." + name, *where_};
  }
  Field operator[](size_t index) const { return {(*value_)[index], fmt::format("{}[{}]", path_, index), *where_}; }
  const Json& operator*() const { return *value_; }
  const Json* operator->() const { return value_; }
  bool is(const char* text) const { return *value_ == text; }

  Error wrong(std::string expected) const {
    std::string got = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (got.size() > 80) got = std::string("a long ") + value_->type_name();
    return {*where_, path_, std::move(expected), std::move(got)};
  }

  Result<void> one_of(std::initializer_list<Json> allowed) const {
    std::string expected;
    for (const Json& value : allowed) {
      if (*value_ == value) return {};
      expected += (expected.empty() ? "" : " or ") + value.dump();
    }
    return wrong(std::move(expected));
  }

 private:
  const Json* value_;
  std::string path_;
  const std::string* where_;
};

Result<void> check_model(const Field& model) {
  if (!model->is_object()) return model.wrong("an object");
  LILY_CHECK(model["type"].one_of({"BPE"}));
  LILY_CHECK(model["dropout"].one_of({nullptr, 0.0}));
  LILY_CHECK(model["unk_token"].one_of({nullptr}));
  LILY_CHECK(model["continuing_subword_prefix"].one_of({nullptr, ""}));
  LILY_CHECK(model["end_of_word_suffix"].one_of({nullptr, ""}));
  LILY_CHECK(model["byte_fallback"].one_of({nullptr, false}));
  LILY_CHECK(model["ignore_merges"].one_of({nullptr, false, true}));
  if (!model["vocab"]->is_object()) return model["vocab"].wrong("an object");
  if (!model["merges"]->is_array()) return model["merges"].wrong("an array");
  return {};
}

// ByteLevel, as the last step, does nothing here but name the byte alphabet.
Result<void> check_byte_level(const Field& step, bool use_regex) {
  LILY_CHECK(step["type"].one_of({"ByteLevel"}));
  LILY_CHECK(step["add_prefix_space"].one_of({false}));
  return use_regex ? step["use_regex"].one_of({true, nullptr}) : step["use_regex"].one_of({false});
}

Result<std::string> read_pre_tokenizer(const Field& pre) {
  if (pre["type"].is("ByteLevel")) {
    LILY_CHECK(check_byte_level(pre, true));
    return std::string(gpt2_pattern);
  }
  if (!pre["type"].is("Sequence")) return pre["type"].wrong("\"Sequence\" or \"ByteLevel\"");
  const Field steps = pre["pretokenizers"];
  if (!steps->is_array() || steps->size() != 2) return steps.wrong("a Split and a ByteLevel");
  const Field split = steps[size_t{0}];
  LILY_CHECK(split["type"].one_of({"Split"}));
  LILY_CHECK(split["behavior"].one_of({"Isolated"}));
  LILY_CHECK(split["invert"].one_of({false}));
  LILY_CHECK(check_byte_level(steps[size_t{1}], false));
  const Field pattern = split["pattern"]["Regex"];
  if (!pattern->is_string()) return pattern.wrong("a regular expression");
  return pattern->get<std::string>();
}

Result<AddedToken> read_added_token(const Field& entry, bool normalizes) {
  const Field id = entry["id"], content = entry["content"];
  const bool id_fits = id->is_number_integer() && *id >= 0 && *id <= max_token_id;
  if (!id_fits) return id.wrong(fmt::format("an integer from 0 to {}", max_token_id));
  if (!content->is_string() || content->get_ref<const std::string&>().empty()) return content.wrong("a text");
  for (const char* flag : {"single_word", "lstrip", "rstrip"}) LILY_CHECK(entry[flag].one_of({false, nullptr}));
  if (normalizes) LILY_CHECK(entry["normalized"].one_of({false}));
  LILY_CHECK(entry["special"].one_of({true, false, nullptr}));
  return AddedToken{content->get<std::string>(), id->get<int32_t>(), *entry["special"] == true};
}

Result<std::vector<AddedToken>> read_added_tokens(const Field& entries, bool normalizes) {
  std::vector<AddedToken> tokens;
  if (entries->is_null()) return tokens;
  if (!entries->is_array()) return entries.wrong("an array");
  for (size_t i = 0; i < entries->size(); ++i) {
    LILY_TRY(AddedToken token, read_added_token(entries[i], normalizes));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

Result<TokenizerFields> read_tokenizer_fields(const Json& document, const std::string& where) {
  const Field root(document, "", where);
  if (!document.is_object()) return root.wrong("an object");
  LILY_CHECK(check_model(root["model"]));
  if (!root["normalizer"]->is_null()) LILY_CHECK(root["normalizer"]["type"].one_of({"NFC"}));
  if (!root["decoder"]->is_null()) LILY_CHECK(root["decoder"]["type"].one_of({"ByteLevel"}));
  // Any other would add tokens of its own around the text.
  if (!root["post_processor"]->is_null()) LILY_CHECK(root["post_processor"]["type"].one_of({"ByteLevel"}));

  TokenizerFields fields;
  fields.nfc = !root["normalizer"]->is_null();
  fields.ignore_merges = *root["model"]["ignore_merges"] == true;
  LILY_TRY(fields.split_pattern, read_pre_tokenizer(root["pre_tokenizer"]));
  LILY_TRY(fields.added_tokens, read_added_tokens(root["added_tokens"], fields.nfc));
  return fields;
}

}  // namespace lily
