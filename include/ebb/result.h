// Results of the public API: a value, or what went wrong in words for people.
//
// Nothing in ebb throws, prints or exits on bad input, sick disks or full memory; it returns an Error.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace ebb::api {

enum class Code {
  kInvalidArgument,  // it has no meaning; the message says what would
  kNotFound,         // the named thing does not exist
  kDamaged,          // bytes were read, and they are not what they claim to be
  kUnsupported,      // well-formed, but ebb cannot serve it
  kOutOfBudget,      // it cannot be done inside the KV budget, the model's context or memory
  kIo,               // the operating system refused
  kCancelled,        // stopped on request
};

struct Error {
  Code code = Code::kInvalidArgument;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit, so that `return value;` and `return Error{...};` read well.
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : value_(std::move(error)) {}

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(value_); }
  // Only where ok().
  [[nodiscard]] T& value() { return std::get<T>(value_); }
  [[nodiscard]] const T& value() const { return std::get<T>(value_); }
  // Only where not ok().
  [[nodiscard]] const Error& error() const { return std::get<Error>(value_); }

 private:
  std::variant<T, Error> value_;
};

struct Done {};

}  // namespace ebb::api
