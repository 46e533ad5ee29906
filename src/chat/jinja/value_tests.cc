// Tests: `value is name` and `value is name(argument)`.
#include <algorithm>

#include "chat/jinja/filters.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text_operations.h"

namespace ebb::jinja {
namespace {

using Operator = Expression::Operator;

// Asked with the value and the test's argument (undefined when there is none).
using Test = bool (*)(Run& run, const Value& value, const Value& argument);

template <Operator op>
bool compares(Run& run, const Value& value, const Value& argument) {
  return compare(run, op, value, argument);
}

bool is_sequence(const Value& value) {
  const auto* list = value.find<ListRef>();
  return value.is_text() || value.is<DictRef>() || value.is_undefined() ||
         (list != nullptr && (*list)->kind <= ListKind::kRange && (*list)->kind != ListKind::kLazy);
}

bool is_divisible(Run& run, const Value& value, const Value& argument) {
  const Value rest = binary(run, Operator::kModulo, value, argument);
  return !run.failed() && rest.is_number() && rest.number() == 0.0;
}

template <int parity>
bool has_parity(Run& run, const Value& value, const Value&) {
  const Value rest = binary(run, Operator::kModulo, value, std::int64_t{2});
  return !run.failed() && rest.is_number() && rest.number() == parity;
}

// Python's islower and isupper: there is a letter, and none of the other case.
template <MarkedText (*change)(const MarkedText&), MarkedText (*other)(const MarkedText&)>
bool has_case(Run& run, const Value& value, const Value&) {
  // Both cases are made.
  if (!value.is_text() || !run.pay_reading(2 * value.bytes().size())) return false;
  const MarkedText& text = *value.get<TextRef>();
  return change(text).bytes() == text.bytes() && other(text).bytes() != text.bytes();
}

bool knows_filter(Run&, const Value& value, const Value&) {
  if (!value.is_text()) return false;
  const std::string& name = value.bytes();
  return find_text_filter(name) != nullptr || find_list_filter(name) != nullptr ||
         find_choosing_filter(name) != nullptr;
}

bool knows_test(Run&, const Value& value, const Value&);

struct Entry {
  std::string_view name;
  Test test;
};
constexpr Entry kTests[] = {
    {"defined", [](Run&, const Value& value, const Value&) { return !value.is_undefined(); }},
    {"undefined", [](Run&, const Value& value, const Value&) { return value.is_undefined(); }},
    {"none", [](Run&, const Value& value, const Value&) { return value.is_none(); }},
    {"boolean", [](Run&, const Value& value, const Value&) { return value.is<bool>(); }},
    {"true", [](Run&, const Value& value, const Value&) { return value.is<bool>() && value.get<bool>(); }},
    {"false", [](Run&, const Value& value, const Value&) { return value.is<bool>() && !value.get<bool>(); }},
    {"integer", [](Run&, const Value& value, const Value&) { return value.is<std::int64_t>(); }},
    {"float", [](Run&, const Value& value, const Value&) { return value.is<double>(); }},
    {"number", [](Run&, const Value& value, const Value&) { return value.is_number(); }},
    {"string", [](Run&, const Value& value, const Value&) { return value.is_text(); }},
    {"mapping", [](Run&, const Value& value, const Value&) { return value.is<DictRef>(); }},
    {"sequence", [](Run&, const Value& value, const Value&) { return is_sequence(value); }},
    {"iterable", [](Run&, const Value& value,
                    const Value&) { return is_sequence(value) || value.is<ListRef>() || value.is<LoopRef>(); }},
    {"callable",
     [](Run&, const Value& value, const Value&) { return value.is<CallableRef>() || value.is_undefined(); }},
    {"escaped",
     [](Run&, const Value& value, const Value&) { return value.is_text() && value.get<TextRef>()->is_markup(); }},
    {"sameas",
     [](Run& run, const Value& value, const Value& other) {
       return value.is_text() ? other.is_text() && run.equal(value, other) : value.same_object(other);
     }},
    {"divisibleby", is_divisible},
    {"even", has_parity<0>},
    {"odd", has_parity<1>},
    {"lower", has_case<lower, upper>},
    {"upper", has_case<upper, lower>},
    {"in", compares<Operator::kIn>},
    {"eq", compares<Operator::kEqual>},
    {"==", compares<Operator::kEqual>},
    {"equalto", compares<Operator::kEqual>},
    {"ne", compares<Operator::kNotEqual>},
    {"!=", compares<Operator::kNotEqual>},
    {"lt", compares<Operator::kLess>},
    {"<", compares<Operator::kLess>},
    {"lessthan", compares<Operator::kLess>},
    {"le", compares<Operator::kLessEqual>},
    {"<=", compares<Operator::kLessEqual>},
    {"gt", compares<Operator::kGreater>},
    {">", compares<Operator::kGreater>},
    {"greaterthan", compares<Operator::kGreater>},
    {"ge", compares<Operator::kGreaterEqual>},
    {">=", compares<Operator::kGreaterEqual>},
    {"filter", knows_filter},
    {"test", knows_test},
};

bool knows_test(Run&, const Value& value, const Value&) {
  return value.is_text() && std::ranges::find(kTests, value.bytes(), &Entry::name) != std::end(kTests);
}

}  // namespace

bool apply_test(Run& run, std::string_view name, const Value& input, const Arguments& arguments) {
  if (!run.pay(1)) return false;
  const auto* entry = std::ranges::find(kTests, name, &Entry::name);
  if (entry == std::end(kTests)) {
    run.fail("there is no test '{}'", name);
    return false;
  }
  const bool has_argument = !arguments.positional.empty();
  if (arguments.positional.size() > 1 || !arguments.named.empty()) {
    run.fail("the test '{}' takes at most one argument", name);
    return false;
  }
  return entry->test(run, input, has_argument ? arguments.positional.front() : Value());
}

}  // namespace ebb::jinja
