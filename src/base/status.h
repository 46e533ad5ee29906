// Status and Result: how expected failures travel.
//
// A Status is ok, or a code from a closed list with a message that says what failed, on which thing, what was expected
// and what to do. A Result<T> is a value or such a Status. Nothing in the library throws them, prints them or exits.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace ebb {

enum class Code {
  kOk,
  kInvalidArgument,  // the caller asked for something that has no meaning
  kNotFound,         // the named thing does not exist
  kDamaged,          // bytes were read, and they are not what they claim to be
  kUnsupported,      // well-formed, but ebb cannot serve it
  kOutOfBudget,      // it cannot be done inside the budget or the context
  kIo,               // the operating system refused
  kCancelled,        // stopped on request
};

[[nodiscard]] std::string_view code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    EBB_CHECK(code != Code::kOk, "an error needs a code: {}", message_);
  }

  [[nodiscard]] bool ok() const { return code_ == Code::kOk; }
  [[nodiscard]] Code code() const { return code_; }
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// error(Code::kDamaged, "{}: tensor '{}' ends past the file", path, name)
template <class... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit, so that `return value;` reads well
  Result(Status status) : value_(std::move(status)) {
    EBB_CHECK(!std::get<Status>(value_).ok(), "a Result without a value needs an error");
  }

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(value_); }
  [[nodiscard]] Status status() const { return ok() ? Status() : std::get<Status>(value_); }

  [[nodiscard]] T& value() & {
    EBB_CHECK(ok(), "{}", std::get<Status>(value_).message());
    return std::get<T>(value_);
  }
  [[nodiscard]] const T& value() const& {
    EBB_CHECK(ok(), "{}", std::get<Status>(value_).message());
    return std::get<T>(value_);
  }
  [[nodiscard]] T&& value() && {
    EBB_CHECK(ok(), "{}", std::get<Status>(value_).message());
    return std::get<T>(std::move(value_));
  }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> value_;
};

}  // namespace ebb

// Returns from the enclosing function when `expression` (a Status) is an error.
#define EBB_RETURN_IF_ERROR(expression)                                               \
  do {                                                                                \
    if (::ebb::Status ebb_status = (expression); !ebb_status.ok()) return ebb_status; \
  } while (false)

#define EBB_CONCAT_INNER(a, b) a##b
#define EBB_CONCAT(a, b) EBB_CONCAT_INNER(a, b)

// EBB_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
#define EBB_ASSIGN_OR_RETURN(declaration, expression) \
  EBB_ASSIGN_OR_RETURN_INNER(EBB_CONCAT(result_, __LINE__), declaration, expression)
#define EBB_ASSIGN_OR_RETURN_INNER(name, declaration, expression) \
  auto name = (expression);                                       \
  if (!name.ok()) return name.status();                           \
  declaration = std::move(name).value()
