#include "chat/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "chat/jinja/callable.h"
#include "chat/jinja/loop.h"
#include "chat/jinja/methods.h"
#include "chat/jinja/print.h"
#include "chat/jinja/text_operations.h"

namespace ebb::jinja {
namespace {

using Operator = Expression::Operator;

constexpr std::string_view symbol(Operator op) {
  switch (op) {
    case Operator::kAdd: return "+";
    case Operator::kSubtract: return "-";
    case Operator::kMultiply: return "*";
    case Operator::kDivide: return "/";
    case Operator::kFloorDivide: return "//";
    case Operator::kModulo: return "%";
    case Operator::kPower: return "**";
    case Operator::kLess: return "<";
    case Operator::kLessEqual: return "<=";
    case Operator::kGreater: return ">";
    case Operator::kGreaterEqual: return ">=";
    default: return "?";
  }
}

Value fail_types(Run& run, Operator op, const Value& left, const Value& right) {
  if (left.is_undefined()) return fail_undefined(run, left);
  if (right.is_undefined()) return fail_undefined(run, right);
  return run.fail("{} does not work between {} and {}", symbol(op), left.type_name(), right.type_name());
}

// The n-th power of a whole number; overflow fails.
bool whole_power(std::int64_t base, std::int64_t n, std::int64_t& out) {
  out = 1;
  for (; n > 0; n >>= 1) {
    if ((n & 1) != 0 && __builtin_mul_overflow(out, base, &out)) return false;
    if (n > 1 && __builtin_mul_overflow(base, base, &base)) return false;
  }
  return true;
}

Value binary_whole(Run& run, Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool fits = true;
  if ((op == Operator::kFloorDivide || op == Operator::kModulo) && b == 0) return run.fail("division by zero");
  if (b == -1 && op == Operator::kModulo) return std::int64_t{0};
  switch (op) {
    case Operator::kAdd: fits = !__builtin_add_overflow(a, b, &result); break;
    case Operator::kSubtract: fits = !__builtin_sub_overflow(a, b, &result); break;
    case Operator::kMultiply: fits = !__builtin_mul_overflow(a, b, &result); break;
    case Operator::kFloorDivide:
      fits = b != -1 || a != std::numeric_limits<std::int64_t>::min();
      if (fits) result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      break;
    case Operator::kModulo:
      result = a % b;
      if (result != 0 && (result < 0) != (b < 0)) result += b;
      break;
    default:
      if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
      fits = whole_power(a, b, result);
  }
  if (!fits) return run.fail("{} {} {} is beyond 64 bits", a, symbol(op), b);
  return result;
}

Value binary_real(Run& run, Operator op, double a, double b) {
  if ((op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo) && b == 0.0) {
    return run.fail("division by zero");
  }
  switch (op) {
    case Operator::kAdd: return a + b;
    case Operator::kSubtract: return a - b;
    case Operator::kMultiply: return a * b;
    case Operator::kDivide: return a / b;
    case Operator::kFloorDivide: return std::floor(a / b);
    case Operator::kModulo: {
      const double rest = std::fmod(a, b);
      return rest != 0.0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    default: return std::pow(a, b);
  }
}

Value repeat(Run& run, const Value& value, std::int64_t times) {
  const auto n = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size = value.is_text() ? value.bytes().size() : value.get<ListRef>()->items.size() * sizeof(Value);
  if (size > 0 && n > run.limits.max_output_bytes / size) {
    return run.fail("a string or list repeated {} times has more than {} bytes", n, run.limits.max_output_bytes);
  }
  if (value.is_text()) {
    // The marks of a text may take more than its bytes.
    if (!run.pay_scan(n * value.get<TextRef>()->n_bytes_held())) return {};
    MarkedText text;
    for (std::size_t i = 0; i < n && size > 0; ++i) text.append(*value.get<TextRef>());
    return run.text(std::move(text));
  }
  const List& list = *value.get<ListRef>();
  std::vector<Value> items;
  for (std::size_t i = 0; i < n && size > 0; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
  return run.list(std::move(items), list.kind);
}

bool is_sequence(const Value& value) {
  if (value.is_text()) return true;
  const auto* list = value.find<ListRef>();
  return list != nullptr && ((*list)->kind == ListKind::kList || (*list)->kind == ListKind::kTuple);
}

Value add(Run& run, const Value& left, const Value& right) {
  if (left.is_text() && right.is_text()) {
    const MarkedText& a = *left.get<TextRef>();
    if (a.size() + right.bytes().size() > run.limits.max_output_bytes) {
      return run.fail("a string has more than {} bytes", run.limits.max_output_bytes);
    }
    const MarkedText& b = *right.get<TextRef>();
    if (a.is_markup() != b.is_markup() && !run.pay_reading(a.is_markup() ? b.size() : a.size())) return {};
    MarkedText sum = b.is_markup() && !a.is_markup() ? escape_html(a) : a;
    sum.append(a.is_markup() && !b.is_markup() ? escape_html(b) : b);
    sum.set_markup(a.is_markup() || b.is_markup());
    return run.text(std::move(sum));
  }
  if (is_sequence(left) && is_sequence(right) && left.type_name() == right.type_name()) {
    std::vector<Value> items = left.get<ListRef>()->items;
    const std::vector<Value>& more = right.get<ListRef>()->items;
    items.insert(items.end(), more.begin(), more.end());
    return run.list(std::move(items), left.get<ListRef>()->kind);
  }
  return fail_types(run, Operator::kAdd, left, right);
}

}  // namespace

Undefined undefined(std::string what) { return {std::make_shared<const std::string>(std::move(what))}; }

Value fail_undefined(Run& run, const Value& undefined) {
  const auto& what = undefined.get<Undefined>().what;
  return run.fail("{}", what == nullptr ? "a value is undefined" : *what);
}

Value binary(Run& run, Operator op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (op != Operator::kDivide && left.is_whole() && right.is_whole()) {
      return binary_whole(run, op, left.whole(), right.whole());
    }
    return binary_real(run, op, left.number(), right.number());
  }
  if (op == Operator::kAdd) return add(run, left, right);
  if (op == Operator::kMultiply && is_sequence(left) && right.is_whole()) return repeat(run, left, right.whole());
  if (op == Operator::kMultiply && left.is_whole() && is_sequence(right)) return repeat(run, right, left.whole());
  if (op == Operator::kModulo && left.is_text()) return format_percent(run, *left.get<TextRef>(), right);
  return fail_types(run, op, left, right);
}

Value negative(Run& run, const Value& operand) {
  if (operand.is_undefined()) return fail_undefined(run, operand);
  if (const auto* real = operand.find<double>()) return -*real;
  if (operand.is_whole()) return binary_whole(run, Operator::kSubtract, 0, operand.whole());
  return run.fail("- does not work on {}", operand.type_name());
}

bool less(Run& run, const Value& left, const Value& right) {
  const Deeper deeper(run);
  if (!run.pay(1)) return false;
  if (left.is_whole() && right.is_whole()) return left.whole() < right.whole();
  if (left.is_number() && right.is_number()) return left.number() < right.number();
  if (left.is_text() && right.is_text()) {
    return run.pay_scan(std::min(left.bytes().size(), right.bytes().size())) && left.bytes() < right.bytes();
  }
  if (is_sequence(left) && is_sequence(right) && left.type_name() == right.type_name()) {
    const std::vector<Value>& a = left.get<ListRef>()->items;
    const std::vector<Value>& b = right.get<ListRef>()->items;
    std::size_t i = 0;
    while (i < a.size() && i < b.size() && run.equal(a[i], b[i])) ++i;
    return i < a.size() && i < b.size() ? less(run, a[i], b[i]) : a.size() < b.size();
  }
  fail_types(run, Operator::kLess, left, right);
  return false;
}

bool compare(Run& run, Operator op, const Value& left, const Value& right) {
  switch (op) {
    case Operator::kEqual: return run.equal(left, right);
    case Operator::kNotEqual: return !run.equal(left, right);
    case Operator::kIn: return contains(run, right, left);
    case Operator::kNotIn: return !contains(run, right, left);
    case Operator::kLess: return less(run, left, right);
    case Operator::kGreater: return less(run, right, left);
    case Operator::kLessEqual: return less(run, left, right) || run.equal(left, right);
    default: return less(run, right, left) || run.equal(left, right);
  }
}

bool contains(Run& run, const Value& container, const Value& item) {
  if (container.is_text()) {
    if (!item.is_text()) {
      run.fail("'in' a string needs a string on its left, not {}", item.type_name());
      return false;
    }
    return run.pay_scan(container.bytes().size()) &&
           find_first(container.bytes(), item.bytes()) != std::string_view::npos;
  }
  if (const auto* dict = container.find<DictRef>()) return run.find(**dict, item) != nullptr;
  const ListRef items = items_of(run, container);
  if (items == nullptr || !run.pay(items->items.size())) return false;
  return std::ranges::any_of(items->items, [&](const Value& other) { return run.equal(item, other); });
}

Value attribute(Run& run, const Value& object, std::string_view name) {
  if (object.is_undefined()) return fail_undefined(run, object);
  if (const auto* space = object.find<NamespaceRef>()) {
    const Value* value = run.find(*(*space)->values, name);
    return value != nullptr ? *value : undefined(fmt::format("the namespace has no '{:.60}'", name));
  }
  if (const auto* loop = object.find<LoopRef>()) return (*loop)->attribute(run, name);
  if (const NativeFunction method = find_method(object, name); method != nullptr) {
    return CallableRef(run.heap.make<Native>(method_name(object, name), method, object));
  }
  if (const auto* dict = object.find<DictRef>()) {
    if (const Value* value = run.find(**dict, name)) return *value;
  }
  if (const auto* callable = object.find<CallableRef>(); callable != nullptr && name == "name") {
    return run.text(std::string((*callable)->name()));
  }
  return undefined(fmt::format("'{} object' has no attribute '{:.60}'", object.type_name(), name));
}

Value item(Run& run, const Value& object, const Value& index) {
  if (object.is_undefined()) return fail_undefined(run, object);
  if (const auto* dict = object.find<DictRef>()) {
    if (const Value* value = run.find(**dict, index)) return *value;
  }
  const auto* list = object.find<ListRef>();
  const bool by_place =
      index.is_whole() &&
      (object.is_text() || (list != nullptr && (*list)->kind <= ListKind::kRange && (*list)->kind != ListKind::kLazy));
  if (by_place) {
    if (object.is_text() && !run.pay_scan(object.bytes().size())) return {};
    const auto n = static_cast<std::int64_t>(*length_of(object));
    const std::int64_t place = index.whole() < 0 ? index.whole() + n : index.whole();
    if (place < 0 || place >= n) {
      return undefined(fmt::format("'{} object' has no element {}", object.type_name(), index.whole()));
    }
    if (list != nullptr) return (*list)->items[static_cast<std::size_t>(place)];
    if (!run.pay_reading(static_cast<std::size_t>(place))) return {};
    const MarkedText& text = *object.get<TextRef>();
    const std::size_t at = offset_of_character(text.bytes(), static_cast<std::size_t>(place));
    return run.text(text.sub(at, at + character_bytes(text.bytes(), at)));
  }
  if (index.is_text()) return attribute(run, object, index.bytes());
  return undefined(fmt::format("'{} object' has no such element", object.type_name()));
}

std::optional<std::size_t> length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_text()) return count_characters(value.bytes());
  if (const auto* dict = value.find<DictRef>()) return (*dict)->entries().size();
  const auto* list = value.find<ListRef>();
  if (list != nullptr && (*list)->kind != ListKind::kLazy) return (*list)->items.size();
  return std::nullopt;
}

ListRef items_of(Run& run, const Value& value) {
  if (const auto* list = value.find<ListRef>()) return *list;
  std::vector<Value> items;
  if (value.is_text()) {
    const MarkedText& text = *value.get<TextRef>();
    if (!run.pay_bytes(text.size() * 2 * sizeof(MarkedText)) || !run.pay(text.size())) return nullptr;
    for (std::size_t at = 0; at < text.size(); at += character_bytes(text.bytes(), at)) {
      items.push_back(Value::text(text.sub(at, at + character_bytes(text.bytes(), at))));
    }
  } else if (const auto* dict = value.find<DictRef>()) {
    for (const Dict::Entry& entry : (*dict)->entries()) items.push_back(entry.key);
  } else if (!value.is_undefined()) {
    run.fail("'{}' object is not iterable", value.type_name());
    return nullptr;
  }
  const Value made = run.list(std::move(items));
  return made.is<ListRef>() ? made.get<ListRef>() : nullptr;
}

Value slice(Run& run, const Value& object, const SliceBounds& bounds) {
  if (object.is_undefined()) return fail_undefined(run, object);
  const auto* list = object.find<ListRef>();
  if (!object.is_text() && (list == nullptr || (*list)->kind == ListKind::kLazy)) {
    return undefined(fmt::format("'{} object' cannot be sliced", object.type_name()));
  }
  for (const Value* bound : {&bounds.begin, &bounds.end, &bounds.step}) {
    if (!bound->is_none() && !bound->is_whole()) return run.fail("slice bounds must be whole numbers or none");
  }
  if (object.is_text() && !run.pay_scan(object.bytes().size())) return {};
  const auto n = static_cast<std::int64_t>(*length_of(object));
  const std::int64_t step = bounds.step.is_none() ? 1 : bounds.step.whole();
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min())
    return run.fail("a slice's step cannot be {}", step);
  const auto place = [&](const Value& bound, std::int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const std::int64_t at = bound.whole() < 0 ? std::max<std::int64_t>(bound.whole() + n, -1) : bound.whole();
    return step > 0 ? std::clamp<std::int64_t>(at, 0, n) : std::clamp<std::int64_t>(at, -1, n - 1);
  };
  const std::int64_t begin = place(bounds.begin, step > 0 ? 0 : n - 1);
  const std::int64_t end = place(bounds.end, step > 0 ? n : -1);
  if (object.is_text() && step == 1) {
    if (!run.pay_reading(static_cast<std::size_t>(begin + std::max(begin, end)))) return {};
    const MarkedText& text = *object.get<TextRef>();
    const std::size_t from = offset_of_character(text.bytes(), static_cast<std::size_t>(begin));
    const std::size_t to = offset_of_character(text.bytes(), static_cast<std::size_t>(std::max(begin, end)));
    return run.text(text.sub(from, to));
  }
  const ListRef from = items_of(run, object);
  if (from == nullptr) return {};
  if (!run.pay(1)) return {};
  std::vector<Value> items;
  for (std::int64_t i = begin; step > 0 ? i < end : i > end;) {
    items.push_back(from->items[static_cast<std::size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (!object.is_text()) return run.list(std::move(items), (*list)->kind);
  MarkedText text;
  for (const Value& character : items) text.append(*character.get<TextRef>());
  return run.text(std::move(text));
}

}  // namespace ebb::jinja
