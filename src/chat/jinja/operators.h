// Operators: arithmetic, comparison, membership, subscripts and slices, as Python has them.
//
// What Python answers with an exception fails the run. Thread rule: that of the run.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "chat/jinja/run.h"
#include "chat/jinja/syntax.h"
#include "chat/jinja/value.h"

namespace ebb::jinja {

Value binary(Run& run, Expression::Operator op, const Value& left, const Value& right);
bool compare(Run& run, Expression::Operator op, const Value& left, const Value& right);
// left < right
bool less(Run& run, const Value& left, const Value& right);
bool contains(Run& run, const Value& container, const Value& item);
Value negative(Run& run, const Value& operand);

// object.name: an attribute or method first, then a key.
Value attribute(Run& run, const Value& object, std::string_view name);
// object[index]: a key or place first, then an attribute.
Value item(Run& run, const Value& object, const Value& index);

struct SliceBounds {
  Value begin = None{};
  Value end = None{};
  Value step = None{};
};
Value slice(Run& run, const Value& object, const SliceBounds& bounds);

// The items of whatever can be walked through: a list, a dict's keys, a string's characters; none for undefined. Fails the
// run, and gives null, on anything else.
ListRef items_of(Run& run, const Value& value);
// Characters, items or keys; nothing, and not failed, for what has no length.
std::optional<std::size_t> length_of(const Value& value);
// Fails the run with "'NAME' is undefined" and the like.
Value fail_undefined(Run& run, const Value& undefined);
[[nodiscard]] Undefined undefined(std::string what);

// "%" with a string on its left; `arguments` is a tuple or one value.
Value format_percent(Run& run, const MarkedText& format, const Value& arguments);

}  // namespace ebb::jinja
