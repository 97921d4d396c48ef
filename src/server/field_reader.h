// The fields of one JSON object of a request, each read once, by name and type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/api.h"

namespace lily::server {

// Keeps the first fault: readers go on with nothing, and whoever started them looks here at the end.
class Faults {
 public:
  // "PARAM: WHAT: expected EXPECTED, got GOT", an error of status 400.
  void add(const std::string& param, const std::string& what, const std::string& expected = "",
           const std::string& got = "");
  bool any() const { return error_.has_value(); }
  const ApiError& first() const { return *error_; }

 private:
  std::optional<ApiError> error_;
};

// "an object", "the number 7": for messages.
std::string describe(const OrderedJson& value);

class FieldReader {
 public:
  // `path`: of the object, "" for the body itself. All of them outlive the reader. What is no object is a fault.
  FieldReader(const OrderedJson& object, std::string path, Faults& faults);

  // Null where the field is absent or null.
  const OrderedJson* find(const char* name);
  std::optional<std::string> text(const char* name);
  std::optional<bool> boolean(const char* name);
  std::optional<double> number(const char* name, double low, double high);
  // 3.0 is a whole number too.
  std::optional<int64_t> integer(const char* name, int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
  const OrderedJson* array(const char* name);
  const OrderedJson* object(const char* name);

  void ignore(std::initializer_list<const char*> names);
  void refuse(const char* name, const char* why);  // where it is given
  void refuse_others();                            // every field that nobody asked for

  std::string path_of(std::string_view name) const;
  Faults& faults() { return faults_; }

 private:
  void wrong_type(const char* name, const char* expected, const OrderedJson& got);

  const OrderedJson& object_;
  std::string path_;
  Faults& faults_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace lily::server
