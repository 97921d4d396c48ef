// Reads a request's JSON. The first thing wrong sticks, so that a list of fields reads as a list.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api.h"

namespace lily::server {

using Fault = std::optional<ApiError>;

// A 400 about `param`, unless there is a fault already.
void blame(Fault& fault, const std::string& param, const std::string& problem);

// JSON text from inside a request or a reply. Nothing: it is malformed, or nested deeper than 100 levels.
std::optional<OrderedJson> parse_inner_json(std::string_view text);

std::string shortened(const std::string& text);  // to what fits in an error, where a client may have sent anything
std::string element(const std::string& list, size_t i);  // "list[i]"

// One line; never throws, whatever the bytes of its strings.
std::string to_text(const OrderedJson& value);

// The fields of one object. A field that is null counts as absent, everywhere.
class JsonFields {
 public:
  // `path` leads to the object ("input[3]"); empty: the body. All outlive the reader.
  JsonFields(const OrderedJson& object, std::string path, Fault& fault);

  // Nothing where the field is absent, or of another kind, which is a fault.
  const OrderedJson* any(std::string_view key);
  const OrderedJson* object(std::string_view key);
  const OrderedJson* array(std::string_view key);
  const std::string* string(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key);
  std::optional<int64_t> integer(std::string_view key, int64_t least);  // 4096.0 is one too
  std::optional<int64_t> token_count(std::string_view key);             // 1 or more

  const std::string* required_string(std::string_view key);
  // One of `choices`.
  const std::string* choice(std::string_view key, std::initializer_list<std::string_view> choices);

  // Fields that are known and have no effect here.
  void skip(std::initializer_list<std::string_view> keys) { known_.insert(known_.end(), keys); }
  // A fault for each field that must not be there with a value other than false, empty, or null.
  void refuse(std::initializer_list<std::string_view> keys);
  // A fault where the object has a field that nobody asked for.
  void refuse_others();

  std::string path(std::string_view key) const;
  void blame(std::string_view key, const std::string& problem) { server::blame(fault_, path(key), problem); }

 private:
  const OrderedJson* of_kind(std::string_view key, bool (OrderedJson::*is_kind)() const noexcept, const char* kind);

  const OrderedJson& object_;
  std::string path_;
  Fault& fault_;
  std::vector<std::string_view> known_;
};

}  // namespace lily::server
