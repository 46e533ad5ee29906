#include "chat/jinja/run.h"

#include <algorithm>

#include "chat/jinja/callable.h"

namespace ebb::jinja {

void Run::set_failure(Code code, std::string what) {
  if (failed()) return;
  failure_ = Status(code, fmt::format("chat template, line {}: {}", line, what));
}

Value Run::raise(const std::string& message) {
  set_failure(Code::kInvalidArgument, "it refuses these messages: " + message);
  return {};
}

bool Run::pay(std::size_t steps) {
  steps_ += std::min(steps, limits.max_steps);
  if (steps_ > limits.max_steps) {
    set_failure(Code::kOutOfBudget,
                fmt::format("it takes more than {} steps; is there an endless loop in it?", limits.max_steps));
  }
  return !failed();
}

bool Run::pay_bytes(std::size_t n_bytes) {
  bytes_ += std::min(n_bytes, limits.max_bytes);
  if (bytes_ > limits.max_bytes) {
    set_failure(Code::kOutOfBudget, fmt::format("it makes more than {} bytes of strings and lists", limits.max_bytes));
  }
  return pay(n_bytes / 64);
}

bool Run::equal(const Value& a, const Value& b) {
  CompareCost cost{.max_steps = limits.max_steps - std::min(steps_, limits.max_steps)};
  const bool same = jinja::equal(a, b, cost);
  return pay(cost.n_steps + 1) && same;
}

Value Run::text(MarkedText marked) {
  if (!pay_bytes(marked.size() + marked.marks().size() * sizeof(Mark))) return {};
  return Value::text(std::move(marked));
}

Value Run::list(std::vector<Value> items, ListKind kind) {
  if (!pay_bytes(sizeof(List) + items.size() * sizeof(Value)) || !pay(items.size())) return {};
  return heap.make<List>(std::move(items), kind);
}

std::optional<std::vector<Value>> bind(Run& run, std::string_view callee, const Arguments& arguments,
                                       std::initializer_list<std::string_view> names) {
  if (arguments.positional.size() > names.size()) {
    run.fail("{} takes at most {} arguments, not {}", callee, names.size(), arguments.positional.size());
    return std::nullopt;
  }
  std::vector<Value> bound(names.size());
  std::ranges::copy(arguments.positional, bound.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto* at = std::ranges::find(names, name);
    if (at == names.end()) {
      run.fail("{} knows no argument '{}'", callee, name);
      return std::nullopt;
    }
    bound[static_cast<std::size_t>(at - names.begin())] = value;
  }
  return bound;
}

}  // namespace ebb::jinja
