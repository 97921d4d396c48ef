#include "model/json.h"

#include <set>
#include <vector>

#include "base/mapped_file.h"

namespace lily {
namespace {

constexpr size_t max_file_bytes = 100'000'000;
constexpr int max_depth = 32;

// Watches the parser's events for what nlohmann::json lets pass. Throws an Error, caught by parse_json.
class StrictObserver {
 public:
  explicit StrictObserver(std::string where) : where_(std::move(where)) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > max_depth)
      throw Error{where_, "JSON nested too deeply", std::to_string(max_depth) + " levels at most", ""};
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) throw Error{where_, "duplicate JSON key", "each key once", key};
    }
    return true;
  }

 private:
  std::string where_;
  std::vector<std::set<std::string>> keys_;  // of every open object
};

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, const std::string& where) {
  try {
    StrictObserver observer(where);
    return nlohmann::json::parse(text, std::ref(observer));
  } catch (const Error& error) {
    return error;
  } catch (const nlohmann::json::parse_error& error) {
    return Error{where, "not valid JSON", "", "a syntax error at byte " + std::to_string(error.byte)};
  } catch (const nlohmann::json::exception&) {
    return Error{where, "not valid JSON", "numbers within the range of a double", "one outside it"};
  }
}

Result<nlohmann::json> read_json_object(const std::string& path) {
  LILY_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > max_file_bytes) {
    return Error{path, "too large for a JSON file", std::to_string(max_file_bytes) + " bytes at most",
                 std::to_string(bytes.size())};
  }
  LILY_TRY(nlohmann::json value, parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path));
  if (!value.is_object()) return Error{path, "wrong JSON", "an object", kind_of(value)};
  return value;
}

std::string kind_of(const nlohmann::json& value) {
  if (value.is_null()) return "null";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "a boolean";
  return "a number";
}

std::string short_form(const nlohmann::json& value) {
  if (value.is_structured()) return kind_of(value);
  const std::string text = value.dump();
  return text.size() <= 60 ? text : text.substr(0, 60) + "...";
}

}  // namespace lily
