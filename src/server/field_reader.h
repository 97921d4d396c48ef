// The fields of one JSON object of a request, each read once, by name and type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "server/api.h"

namespace lily::server {

using Words = std::initializer_list<std::string_view>;

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

std::string shortened(const std::string& text, size_t limit);  // bytes, cut between characters
std::string element(const std::string& list, size_t i);        // "list[i]"

// Fields that are null count as absent.
class FieldReader {
 public:
  // `path`: of the object, "" for the body itself. All of them outlive the reader. What is no object is a fault.
  FieldReader(const OrderedJson& object, std::string path, Faults& faults);

  // Nothing where the field is absent, or not what is asked for, which is a fault.
  const OrderedJson* find(const char* name);
  std::optional<std::string> text(const char* name);
  std::optional<std::string> choice(const char* name, Words choices);
  std::optional<bool> boolean(const char* name);
  std::optional<double> number(const char* name, double low, double high);
  // 3.0 is a whole number too.
  std::optional<int64_t> integer(const char* name, int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
  std::optional<int64_t> token_count(const char* name, int64_t low = 1);  // cut to what is safe to add to
  const OrderedJson* array(const char* name);
  const OrderedJson* object(const char* name);
  std::optional<FieldReader> inner(const char* name);  // of an object
  std::string required_text(const char* name);         // not empty, or it is a fault

  void ignore(std::initializer_list<const char*> names);
  void refuse(const char* name, const char* why);               // where it is given
  void refuse_given(std::initializer_list<const char*> names);  // unless false or empty
  void refuse_others();                                         // every field that nobody asked for

  void fault(const char* name, const std::string& what, const std::string& expected = "", const std::string& got = "");
  void missing(const char* name, const std::string& expected = "") { fault(name, "missing", expected); }
  void wrong_type(const char* name, const char* expected, const OrderedJson& got);

  std::string path_of(std::string_view name) const;
  Faults& faults() { return faults_; }

 private:
  const OrderedJson& object_;
  std::string path_;
  Faults& faults_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace lily::server
