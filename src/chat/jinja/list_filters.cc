// Filters that take lists and dicts as a whole.
#include <algorithm>

#include "chat/jinja/filters.h"
#include "chat/jinja/list_keys.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"
#include "chat/jinja/text_operations.h"

namespace ebb::jinja {
namespace {

Value do_length(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "length", arguments, {})) return {};
  const auto n = length_of(input);
  if (!n || !run.pay_scan(*n)) return run.fail("a {} has no length", input.type_name());
  return static_cast<std::int64_t>(*n);
}

Value do_default(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "default", arguments, {"default_value", "boolean"});
  if (!given) return {};
  if (!input.is_undefined() && (input.truthy() || !(*given)[1].truthy())) return input;
  return arguments.positional.empty() && arguments.named.empty() ? run.text(std::string()) : (*given)[0];
}

Value do_first(Run& run, const Value& input, const Arguments& arguments) {
  const ListRef items = bind(run, "first", arguments, {}) ? items_of(run, input) : nullptr;
  if (items == nullptr || items->items.empty()) return undefined("no first item, sequence was empty");
  return items->items.front();
}

Value do_last(Run& run, const Value& input, const Arguments& arguments) {
  const ListRef items = bind(run, "last", arguments, {}) ? items_of(run, input) : nullptr;
  if (items == nullptr || items->items.empty()) return undefined("no last item, sequence was empty");
  return items->items.back();
}

Value do_list(Run& run, const Value& input, const Arguments& arguments) {
  const ListRef items = bind(run, "list", arguments, {}) ? items_of(run, input) : nullptr;
  return items == nullptr ? Value() : run.list(std::vector<Value>(items->items));
}

Value do_items(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "items", arguments, {})) return {};
  if (input.is_undefined()) return run.list({}, ListKind::kLazy);
  if (!input.is<DictRef>()) return run.fail("items needs a mapping, not {}", input.type_name());
  std::vector<Value> pairs;
  for (const Dict::Entry& entry : input.get<DictRef>()->entries()) {
    pairs.push_back(run.list({entry.key, entry.value}, ListKind::kTuple));
  }
  return run.list(std::move(pairs), ListKind::kLazy);
}

Value do_reverse(Run& run, const Value& input, const Arguments& arguments) {
  if (!bind(run, "reverse", arguments, {})) return {};
  if (input.is_text()) return slice(run, input, {.step = std::int64_t{-1}});
  const ListRef items = items_of(run, input);
  if (items == nullptr) return {};
  return run.list(std::vector<Value>(items->items.rbegin(), items->items.rend()), ListKind::kLazy);
}

Value do_join(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "join", arguments, {"d", "attribute"});
  const ListRef items = given ? items_of(run, input) : nullptr;
  if (items == nullptr) return {};
  const MarkedText glue = to_text(run, (*given)[0]);
  MarkedText out;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    const Value item = key_of(run, items->items[i], (*given)[1]);
    if (run.failed() || !run.pay(1) || !run.pay_bytes(glue.size())) return {};
    if (out.size() > run.limits.max_output_bytes)
      return run.fail("join makes more than {} bytes", run.limits.max_output_bytes);
    if (i > 0) out.append(glue);
    append_text(run, item, out);
  }
  return run.text(std::move(out));
}

// Pairs of sort key and item, in the order of the keys; the first of equals first.
struct Keyed {
  Value key;
  Value item;
};

void sort_keyed(Run& run, std::vector<Keyed>& keyed, bool reverse) {
  // Steps and failures make `less` inconsistent, which std::stable_sort survives: it merges within its own range.
  std::ranges::stable_sort(keyed, [&](const Keyed& a, const Keyed& b) {
    return reverse ? less(run, b.key, a.key) : less(run, a.key, b.key);
  });
}

Value do_sort(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const ListRef items = given ? items_of(run, input) : nullptr;
  if (items == nullptr) return {};
  std::vector<Keyed> keyed;
  for (const Value& item : items->items) {
    keyed.push_back({fold_case(run, key_of(run, item, (*given)[2]), (*given)[1].truthy()), item});
  }
  if (run.failed()) return {};
  sort_keyed(run, keyed, (*given)[0].truthy());
  std::vector<Value> sorted;
  for (Keyed& entry : keyed) sorted.push_back(std::move(entry.item));
  return run.list(std::move(sorted));
}

Value do_dictsort(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  if (!given) return {};
  if (!input.is<DictRef>()) return run.fail("dictsort needs a dict, not {}", input.type_name());
  const bool by_value = (*given)[1].is_text() && (*given)[1].bytes() == "value";
  std::vector<Keyed> keyed;
  for (const Dict::Entry& entry : input.get<DictRef>()->entries()) {
    keyed.push_back({fold_case(run, by_value ? entry.value : entry.key, (*given)[0].truthy()),
                     run.list({entry.key, entry.value}, ListKind::kTuple)});
  }
  sort_keyed(run, keyed, (*given)[2].truthy());
  std::vector<Value> sorted;
  for (Keyed& entry : keyed) sorted.push_back(std::move(entry.item));
  return run.list(std::move(sorted));
}

Value do_unique(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "unique", arguments, {"case_sensitive", "attribute"});
  const ListRef items = given ? items_of(run, input) : nullptr;
  if (items == nullptr) return {};
  std::vector<Value> keys;
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    const Value key = fold_case(run, key_of(run, item, (*given)[1]), (*given)[0].truthy());
    if (run.failed() || !run.pay(keys.size())) return {};
    if (std::ranges::any_of(keys, [&](const Value& other) { return run.equal(key, other); })) continue;
    keys.push_back(key);
    kept.push_back(item);
  }
  return run.list(std::move(kept), ListKind::kLazy);
}

template <bool largest>
Value do_extreme(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const ListRef items = given ? items_of(run, input) : nullptr;
  if (items == nullptr || items->items.empty()) return undefined("no aggregated item, sequence was empty");
  const auto key = [&](const Value& item) {
    return fold_case(run, key_of(run, item, (*given)[1]), (*given)[0].truthy());
  };
  Value best = items->items.front();
  for (const Value& item : items->items) {
    const bool better = largest ? less(run, key(best), key(item)) : less(run, key(item), key(best));
    if (run.failed()) return {};
    if (better) best = item;
  }
  return best;
}

Value do_sum(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "sum", arguments, {"attribute", "start"});
  const ListRef items = given ? items_of(run, input) : nullptr;
  if (items == nullptr) return {};
  Value total = (*given)[1].is_undefined() ? Value(std::int64_t{0}) : (*given)[1];
  for (const Value& item : items->items) {
    total = binary(run, Expression::Operator::kAdd, total, key_of(run, item, (*given)[0]));
    if (run.failed() || !run.pay(1)) return {};
  }
  return total;
}

Value do_batch(Run& run, const Value& input, const Arguments& arguments) {
  const auto given = bind(run, "batch", arguments, {"linecount", "fill_with"});
  const ListRef items = given ? items_of(run, input) : nullptr;
  if (items == nullptr) return {};
  if (!(*given)[0].is_whole() || (*given)[0].whole() < 1 || (*given)[0].whole() > 1'000'000) {
    return run.fail("batch needs a size of 1 to 1000000");
  }
  const auto size = static_cast<std::size_t>((*given)[0].whole());
  std::vector<Value> batches;
  for (std::size_t begin = 0; begin < items->items.size(); begin += size) {
    const std::size_t end = std::min(begin + size, items->items.size());
    std::vector<Value> batch(items->items.begin() + static_cast<std::ptrdiff_t>(begin),
                             items->items.begin() + static_cast<std::ptrdiff_t>(end));
    if (const Value& fill = (*given)[1]; !fill.is_undefined() && !fill.is_none()) batch.resize(size, fill);
    batches.push_back(run.list(std::move(batch)));
  }
  return run.list(std::move(batches), ListKind::kLazy);
}

struct Filter {
  std::string_view name;
  NativeFunction function;
};
constexpr Filter kFilters[] = {
    {"length", do_length},   {"count", do_length},      {"default", do_default},    {"d", do_default},
    {"first", do_first},     {"last", do_last},         {"list", do_list},          {"items", do_items},
    {"reverse", do_reverse}, {"join", do_join},         {"sort", do_sort},          {"dictsort", do_dictsort},
    {"unique", do_unique},   {"max", do_extreme<true>}, {"min", do_extreme<false>}, {"sum", do_sum},
    {"batch", do_batch},
};

}  // namespace

NativeFunction find_list_filter(std::string_view name) {
  const auto* filter = std::ranges::find(kFilters, name, &Filter::name);
  return filter == std::end(kFilters) ? nullptr : filter->function;
}

}  // namespace ebb::jinja
