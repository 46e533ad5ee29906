// Filters that go through a list item by item: map, select, reject and their like.
#include <algorithm>
#include <charconv>

#include "chat/jinja/filters.h"
#include "chat/jinja/list_keys.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/text_operations.h"

namespace ebb::jinja {
namespace {

// Nothing to go through: with these filters none and false are as good as an empty list.
bool is_nothing(const Value& input) { return !input.truthy(); }

// The arguments behind the first `n`.
Arguments without_first(const Arguments& arguments, std::size_t n) {
  Arguments rest;
  const std::size_t first = std::min(n, arguments.positional.size());
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(first), arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

const Value* find_named(const Arguments& arguments, std::string_view name) {
  const auto found = std::ranges::find_if(arguments.named, [name](const auto& entry) { return entry.first == name; });
  return found == arguments.named.end() ? nullptr : &found->second;
}

Value do_map(Run& run, const Value& input, const Arguments& arguments) {
  if (is_nothing(input)) return run.list({}, ListKind::kLazy);
  const ListRef items = items_of(run, input);
  if (items == nullptr) return {};
  const Value* path = find_named(arguments, "attribute");
  const Value* otherwise = find_named(arguments, "default");
  if (path == nullptr && (arguments.positional.empty() || !arguments.positional.front().is_text())) {
    return run.fail("map needs the name of a filter, or attribute=");
  }
  const Arguments rest = path == nullptr ? without_first(arguments, 1) : Arguments{};
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    if (path == nullptr) {
      mapped.push_back(apply_filter(run, arguments.positional.front().bytes(), item, rest));
    } else {
      mapped.push_back(key_of(run, item, *path));
      if (mapped.back().is_undefined() && otherwise != nullptr) mapped.back() = *otherwise;
    }
    if (run.failed()) return {};
  }
  return run.list(std::move(mapped), ListKind::kLazy);
}

template <bool wanted, bool by_attribute>
Value do_choose(Run& run, const Value& input, const Arguments& arguments) {
  if (is_nothing(input)) return run.list({}, ListKind::kLazy);
  const ListRef items = items_of(run, input);
  if (items == nullptr) return {};
  if (by_attribute && arguments.positional.empty()) return run.fail("selectattr needs the name of an attribute");
  const std::size_t n_before = by_attribute ? 1 : 0;
  const bool has_test = arguments.positional.size() > n_before;
  if (has_test && !arguments.positional[n_before].is_text()) return run.fail("the name of a test must be a string");
  const Arguments rest = without_first(arguments, n_before + 1);
  std::vector<Value> chosen;
  for (const Value& item : items->items) {
    const Value subject = by_attribute ? key_of(run, item, arguments.positional.front()) : item;
    const bool passes =
        has_test ? apply_test(run, arguments.positional[n_before].bytes(), subject, rest) : subject.truthy();
    if (run.failed() || !run.pay(1)) return {};
    if (passes == wanted) chosen.push_back(item);
  }
  return run.list(std::move(chosen), ListKind::kLazy);
}

Value do_attr(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "attr", arguments, {"name"});
  if (!given) return {};
  if (!given->front().is_text()) return run.fail("attr needs a name");
  // Attributes only, no keys.
  return input.is<DictRef>() ? undefined("a dict's keys are no attributes")
                             : attribute(run, input, given->front().bytes());
}

Value do_groupby(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "groupby", arguments, {"attribute", "default", "case_sensitive"});
  if (!given) return {};
  const Value sorted =
      apply_filter(run, "sort", input, {.named = {{"attribute", (*given)[0]}, {"case_sensitive", (*given)[2]}}});
  if (run.failed()) return {};
  std::vector<Value> groups;
  for (const Value& item : sorted.get<ListRef>()->items) {
    const Value key = key_of(run, item, (*given)[0]);
    const Value* last = groups.empty() ? nullptr : &groups.back().get<ListRef>()->items.front();
    const bool case_sensitive = (*given)[2].truthy();
    if (last == nullptr || !run.equal(fold_case(run, *last, case_sensitive), fold_case(run, key, case_sensitive))) {
      groups.push_back(run.list({key, run.list({})}, ListKind::kTuple));
      if (run.failed()) return {};
    }
    groups.back().get<ListRef>()->items[1].get<ListRef>()->items.push_back(item);
  }
  return run.list(std::move(groups));
}

struct Filter {
  std::string_view name;
  NativeFunction function;
};
constexpr Filter kFilters[] = {
    {"map", do_map},
    {"select", do_choose<true, false>},
    {"reject", do_choose<false, false>},
    {"selectattr", do_choose<true, true>},
    {"rejectattr", do_choose<false, true>},
    {"attr", do_attr},
    {"groupby", do_groupby},
};

}  // namespace

Value key_of(Run& run, const Value& value, const Value& path) {
  if (path.is_undefined() || path.is_none()) return value;
  if (path.is_whole()) return item(run, value, path);
  if (!path.is_text()) return run.fail("an attribute's name is a string, not {}", path.type_name());
  Value found = value;
  std::string_view rest = path.bytes();
  if (!run.pay_scan(rest.size())) return {};
  while (run.pay(1)) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    std::int64_t place = 0;
    const bool is_place =
        std::from_chars(part.data(), part.data() + part.size(), place).ptr == part.data() + part.size();
    found = item(run, found, is_place && !part.empty() ? Value(place) : Value::text(std::string(part)));
    if (dot == rest.size() || run.failed()) return found;
    rest.remove_prefix(dot + 1);
  }
  return {};
}

Value fold_case(Run& run, const Value& value, bool case_sensitive) {
  if (!value.is_text() || case_sensitive) return value;
  return run.pay_reading(value.bytes().size()) ? Value::text(lower(*value.get<TextRef>())) : Value();
}

NativeFunction find_choosing_filter(std::string_view name) {
  const auto* filter = std::ranges::find(kFilters, name, &Filter::name);
  return filter == std::end(kFilters) ? nullptr : filter->function;
}

}  // namespace ebb::jinja
