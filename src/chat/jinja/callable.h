// Callable: what a template can call: macros, built-in functions, methods bound to their object.
//
// Thread rule: that of the rendering it belongs to.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/value.h"

namespace ebb::jinja {

class Run;

struct Arguments {
  std::vector<Value> positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
};

// The arguments in the order of `names`, undefined where none was given. Fails the run, and gives nothing, when there are
// more than that or others.
[[nodiscard]] std::optional<std::vector<Value>> bind(Run& run, std::string_view callee, const Arguments& arguments,
                                                     std::initializer_list<std::string_view> names);

class Callable : public Object {
 public:
  virtual Value call(Run& run, const Arguments& arguments) = 0;
  [[nodiscard]] virtual std::string_view name() const = 0;
};

using NativeFunction = Value (*)(Run& run, const Value& self, const Arguments& arguments);

// A built-in function, or a method with the object it was taken from.
class Native final : public Callable {
 public:
  Native(std::string_view name, NativeFunction function, Value self = {})
      : name_(name), function_(function), self_(std::move(self)) {}
  ~Native() override { let_go(); }

  Value call(Run& run, const Arguments& arguments) override { return function_(run, self_, arguments); }
  [[nodiscard]] std::string_view name() const override { return name_; }

 private:
  void let_go() override { bury({std::move(self_)}); }

  std::string_view name_;  // of a table that lives for ever
  NativeFunction function_;
  Value self_;
};

}  // namespace ebb::jinja
