// Strict JSON: what a hostile or broken file does becomes an Error, never an exception.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lily {

// Parses `text`; a syntax error, a duplicate key or nesting deeper than 32 is an error. `where` names the file.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& where);

// Parses the file at `path` (at most 100 MB), which must hold an object.
Result<nlohmann::json> read_json_object(const std::string& path);

// "a string", "a number": what a value is, for errors.
std::string kind_of(const nlohmann::json& value);

// A short form of a value for errors: "4", "\"yarn\"", "an object".
std::string short_form(const nlohmann::json& value);

}  // namespace lily
