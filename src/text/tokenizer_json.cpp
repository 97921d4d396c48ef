#include "text/tokenizer_json.h"

#include <fmt/format.h>

#include <utility>

#include "text/byte_alphabet.h"
#include "text/json_scanner.h"

namespace lily {
namespace {

using Json = nlohmann::json;

constexpr size_t max_file_size = size_t{1} << 30;  // offsets are 32-bit

class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : text_(text), where_(where), scanner_(text) {}

  Result<TokenizerJson> read() {
    out_.document = Json::object();
    out_.token_bytes.reserve(text_.size() / 4);
    out_.merge_bytes.reserve(text_.size() / 4);
    if (scanner_.peek() != '{') return Error{where_, "not a tokenizer.json", "a JSON object", ""};
    const bool whole = scanner_.object([&](std::string_view key) {
      return key == "model" && scanner_.peek() == '{' ? read_model() : read_field(key, out_.document);
    });
    const bool ended = scanner_.peek() == '\0' && scanner_.position() == text_.size();
    if (whole && ended) return std::move(out_);
    if (ended) return Error{where_, "malformed JSON", "", "the end of the file inside a value"};
    if (!error_.where.empty()) return error_;
    return Error{where_, fmt::format("malformed JSON at byte {}", scanner_.position()), "", ""};
  }

 private:
  bool fail(std::string what, std::string expected, std::string got) {
    error_ = {where_, std::move(what), std::move(expected), std::move(got)};
    return false;
  }

  bool put(Json& object, const std::string& key, Json value) {
    if (value.is_discarded()) return fail("malformed JSON in " + excerpt(key), "", "");
    return object.emplace(key, std::move(value)).second || fail(excerpt(key) + " stands twice in one object", "", "");
  }

  bool read_field(std::string_view key, Json& object) {
    const std::string name(key);
    std::string_view value;
    return scanner_.skip(value) && put(object, name, Json::parse(value, nullptr, false));
  }

  bool read_model() {
    if (!put(out_.document, "model", Json::object())) return false;
    Json& model = out_.document["model"];
    return scanner_.object([&](std::string_view key) {
      if (key == "vocab" && scanner_.peek() == '{') return put(model, "vocab", Json::object()) && read_vocabulary();
      if (key == "merges" && scanner_.peek() == '[') return put(model, "merges", Json::array()) && read_merges();
      return read_field(key, model);
    });
  }

  bool read_vocabulary() {
    return scanner_.object([&](std::string_view token) {
      const size_t offset = out_.token_bytes.size();
      if (!append_token_bytes(token, out_.token_bytes)) return fail("model.vocab: not UTF-8", "", excerpt(token));
      const size_t size = out_.token_bytes.size() - offset;
      int64_t id = 0;
      if (!scanner_.integer(id)) return fail("model.vocab: id of " + excerpt(token), "an integer", next_value());
      out_.tokens.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(size), id});
      return true;
    });
  }

  bool read_merges() {
    return scanner_.array([&] {
      part_sizes_.clear();
      const size_t offset = out_.merge_bytes.size();
      const bool read = scanner_.peek() == '[' ? read_pair() : read_line();
      if (!read || part_sizes_.size() != 2) {
        return fail(fmt::format("model.merges[{}]", out_.merges.size()), "two tokens", "");
      }
      out_.merges.push_back({static_cast<uint32_t>(offset), part_sizes_[0], part_sizes_[1]});
      return true;
    });
  }

  bool read_pair() {  // ["a", "b"]
    return scanner_.array([&] {
      std::string_view token;
      return scanner_.string(token) && add_part(token);
    });
  }

  bool read_line() {  // "a b": the byte alphabet has no space
    std::string_view line;
    if (!scanner_.string(line)) return false;
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) return false;
    return add_part(line.substr(0, space)) && add_part(line.substr(space + 1));
  }

  bool add_part(std::string_view token) {
    const size_t before = out_.merge_bytes.size();
    if (!append_token_bytes(token, out_.merge_bytes)) return false;
    part_sizes_.push_back(static_cast<uint32_t>(out_.merge_bytes.size() - before));
    return true;
  }

  std::string next_value() {
    std::string_view value;
    return scanner_.skip(value) ? excerpt(value) : "";
  }

  std::string_view text_;
  const std::string& where_;
  JsonScanner scanner_;
  TokenizerJson out_;
  Error error_;
  std::vector<uint32_t> part_sizes_;  // of the tokens of the current merge
};

}  // namespace

std::string excerpt(std::string_view text) {
  constexpr size_t longest = 60;
  const std::string cut(text.substr(0, longest));
  return Json(cut).dump(-1, ' ', false, Json::error_handler_t::replace) + (text.size() > longest ? "..." : "");
}

Result<TokenizerJson> read_tokenizer_json(std::string_view json, const std::string& where) {
  if (json.size() > max_file_size) return Error{where, "file too large", "at most 1 GiB", ""};
  return Reader(json, where).read();
}

}  // namespace lily
