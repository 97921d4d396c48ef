// Result<T>: a value or an Error. User errors (bad files, flags, requests) travel as values; asserts mean our bug.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace lily {

// What a user can be told about a failure, in one line. Empty fields are left out of the line.
struct Error {
  std::string where;     // file, tensor, option: the place the user can go to
  std::string what;      // what is wrong, in a few words
  std::string expected;  // what would have been right
  std::string got;       // what was found
  int exit_code = 2;     // of the program: 1 where the input was right but the work failed

  // "where: what: expected E, got G"; one line, control characters replaced
  std::string message() const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return assert(ok()), std::get<0>(state_); }
  const T& value() const& { return assert(ok()), std::get<0>(state_); }
  T&& value() && { return assert(ok()), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return assert(!ok()), std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const { return assert(!ok_), error_; }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace lily

#define LILY_CONCAT_(a, b) a##b
#define LILY_CONCAT(a, b) LILY_CONCAT_(a, b)

// LILY_TRY(auto x, f()): declares x from the value of f(), or returns f()'s error from the enclosing function.
#define LILY_TRY(declaration, expression)                                             \
  auto LILY_CONCAT(result_, __LINE__) = (expression);                                 \
  if (!LILY_CONCAT(result_, __LINE__)) return LILY_CONCAT(result_, __LINE__).error(); \
  declaration = std::move(LILY_CONCAT(result_, __LINE__)).value()

// LILY_CHECK(f()): returns f()'s error from the enclosing function, where f() has no value to keep.
#define LILY_CHECK(expression) \
  if (auto result = (expression); !result) return result.error()
