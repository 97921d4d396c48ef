// Whether a JSON value satisfies a JSON schema: the keywords that json_constraint enforces, oneOf as anyOf.
#pragma once

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace lily::test {

class SchemaValidator {
 public:
  using Json = nlohmann::ordered_json;

  explicit SchemaValidator(const Json& root) : root_(root) {}
  bool valid(const Json& value) const { return valid(value, root_); }

 private:
  bool valid(const Json& v, const Json& s) const {
    if (s.is_boolean()) return s.get<bool>();
    if (v.is_null() && s.value("nullable", false)) return true;
    if (s.contains("$ref")) return valid(v, root_.at(Json::json_pointer(s["$ref"].get<std::string>().substr(1))));
    const auto holds = [&](const Json& below) { return valid(v, below); };
    for (const char* any : {"anyOf", "oneOf"}) {
      if (s.contains(any) && std::none_of(s[any].begin(), s[any].end(), holds)) return false;
    }
    if (s.contains("allOf") && !std::all_of(s["allOf"].begin(), s["allOf"].end(), holds)) return false;
    if (s.contains("const") && v != s["const"]) return false;
    if (s.contains("enum") && std::find(s["enum"].begin(), s["enum"].end(), v) == s["enum"].end()) return false;
    return type_fits(v, s) && number_fits(v, s) && string_fits(v, s) && object_fits(v, s) && array_fits(v, s);
  }

  static bool is_a(const Json& v, const std::string& type) {
    if (type == "integer") return v.is_number() && std::floor(v.get<double>()) == v.get<double>();
    return type == (v.is_number() ? "number" : v.type_name());
  }

  bool type_fits(const Json& v, const Json& s) const {
    if (!s.contains("type")) return true;
    const Json types = s["type"].is_array() ? s["type"] : Json::array({s["type"]});
    return std::any_of(types.begin(), types.end(), [&](const Json& type) { return is_a(v, type); });
  }

  bool number_fits(const Json& v, const Json& s) const {
    if (!v.is_number()) return true;
    const double x = v.get<double>();
    if (s.contains("multipleOf")) {
      const double times = x / s["multipleOf"].get<double>();
      if (std::abs(times - std::round(times)) > 1e-9 * std::abs(times)) return false;
    }
    return !(s.contains("minimum") && x < s["minimum"].get<double>()) &&
           !(s.contains("maximum") && x > s["maximum"].get<double>()) &&
           !(s.contains("exclusiveMinimum") && x <= s["exclusiveMinimum"].get<double>()) &&
           !(s.contains("exclusiveMaximum") && x >= s["exclusiveMaximum"].get<double>());
  }

  bool string_fits(const Json& v, const Json& s) const {
    if (!v.is_string()) return true;
    const auto& text = v.get_ref<const std::string&>();
    const auto size = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
    return size >= s.value("minLength", 0.0) && size <= s.value("maxLength", 1e18);
  }

  bool object_fits(const Json& v, const Json& s) const {
    if (!v.is_object()) return true;
    const Json properties = s.value("properties", Json::object());
    for (const Json& name : s.value("required", Json::array())) {
      if (!v.contains(name.get<std::string>())) return false;
    }
    for (const auto& [key, member] : v.items()) {
      const Json below = properties.contains(key) ? properties[key] : s.value("additionalProperties", Json(true));
      if (!valid(member, below)) return false;
    }
    return true;
  }

  bool array_fits(const Json& v, const Json& s) const {
    if (!v.is_array()) return true;
    const Json prefix = s.value("prefixItems", Json::array());
    for (size_t i = 0; i < v.size(); ++i) {
      if (!valid(v[i], i < prefix.size() ? prefix[i] : s.value("items", Json(true)))) return false;
    }
    const auto size = static_cast<double>(v.size());
    return size >= s.value("minItems", 0.0) && size <= s.value("maxItems", 1e18);
  }

  const Json& root_;
};

}  // namespace lily::test
