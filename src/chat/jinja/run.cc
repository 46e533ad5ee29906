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
  steps_ += std::min(steps, limits.max_steps + 1);
  if (steps_ > limits.max_steps) {
    set_failure(Code::kOutOfBudget,
                fmt::format("it takes more than {} steps; is there an endless loop in it?", limits.max_steps));
  }
  return !failed();
}

bool Run::pay_bytes(std::size_t n_bytes) {
  bytes_ += std::min(n_bytes, limits.max_bytes + 1);
  if (bytes_ > limits.max_bytes) {
    set_failure(Code::kOutOfBudget, fmt::format("it makes more than {} bytes of strings and lists", limits.max_bytes));
  }
  return pay_scan(n_bytes);
}

const Value* Run::find(const Dict& dict, const Value& key) {
  if (!Dict::can_be_key(key)) return nullptr;
  if (key.is_text()) return find(dict, std::string_view(key.bytes()));
  return dict.find(key);
}

const Value* Run::find(const Dict& dict, std::string_view key) {
  return pay_scan(dict.n_bytes_to_find(key.size())) ? dict.find(key) : nullptr;
}

void Run::set(Dict& dict, const Value& key, Value value) {
  if (key.is_text() && !pay_scan(dict.n_bytes_to_find(key.bytes().size()))) return;
  dict.set(key, std::move(value));
}

bool Run::equal(const Value& a, const Value& b) {
  CompareCost cost{.max_steps = limits.max_steps - std::min(steps_, limits.max_steps)};
  const bool same = jinja::equal(a, b, cost);
  return pay(cost.n_steps + 1) && same;
}

Value Run::text(MarkedText marked) {
  if (!pay_bytes(marked.n_bytes_held())) return {};
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
