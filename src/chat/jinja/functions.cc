// The functions that a template finds defined.
#include <algorithm>
#include <array>
#include <ctime>

#include "chat/jinja/filters.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/print.h"

namespace ebb::jinja {
namespace {

Value do_range(Run& run, const Value&, const Arguments& arguments) {
  const auto given = bind(run, "range", arguments, {"start", "stop", "step"});
  if (!given) return {};
  for (const Value& value : arguments.positional) {
    if (!value.is_whole()) return run.fail("range needs whole numbers, not {}", value.type_name());
  }
  if (arguments.positional.empty()) return run.fail("range needs at least one number");
  const bool one = arguments.positional.size() == 1;
  const std::int64_t start = one ? 0 : (*given)[0].whole();
  const std::int64_t stop = one ? (*given)[0].whole() : (*given)[1].whole();
  const std::int64_t step = arguments.positional.size() == 3 ? (*given)[2].whole() : 1;
  if (step == 0) return run.fail("range needs a step other than 0");
  // As Jinja2's sandbox.
  constexpr std::size_t kMaxRange = 100'000;
  std::vector<Value> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (items.size() == kMaxRange) return run.fail("range is longer than {} numbers", kMaxRange);
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return run.list(std::move(items), ListKind::kRange);
}

// dict(a=1) and dict(other, a=1), as a namespace takes them too.
DictRef make_dict(Run& run, const Arguments& arguments) {
  DictRef dict = run.dict();
  for (const Value& first : arguments.positional) {
    const auto* other = first.find<DictRef>();
    if (other == nullptr) {
      run.fail("a dict is made from dicts and names, not from {}", first.type_name());
      return dict;
    }
    for (const Dict::Entry& entry : (*other)->entries()) run.set(*dict, entry.key, entry.value);
  }
  for (const auto& [name, value] : arguments.named) dict->set(name, value);
  (void)run.pay_bytes(dict->entries().size() * sizeof(Dict::Entry));
  return dict;
}

Value do_dict(Run& run, const Value&, const Arguments& arguments) { return make_dict(run, arguments); }

Value do_namespace(Run& run, const Value&, const Arguments& arguments) {
  return run.heap.make<Namespace>(make_dict(run, arguments));
}

Value do_raise_exception(Run& run, const Value&, const Arguments& arguments) {
  const auto given = bind(run, "raise_exception", arguments, {"message"});
  return given ? run.raise(to_text(run, given->front()).bytes()) : Value();
}

Value do_strftime_now(Run& run, const Value&, const Arguments& arguments) {
  const auto given = bind(run, "strftime_now", arguments, {"format"});
  if (!given) return {};
  if (!given->front().is_text()) return run.fail("strftime_now needs a format");
  if (!run.pay_scan(given->front().bytes().size())) return {};
  // A space at the end tells an empty result from one that does not fit.
  const std::string format = given->front().bytes() + " ";
  std::array<char, 512> buffer{};
  const std::size_t n = std::strftime(buffer.data(), buffer.size(), format.c_str(), &run.now);
  if (n == 0) return run.fail("strftime_now makes more than {} bytes", buffer.size() - 2);
  return run.text(std::string(buffer.data(), n - 1));
}

Value call_joiner(Run& run, const Value& self, const Arguments&) {
  std::vector<Value>& state = self.get<ListRef>()->items;  // [separator, used]
  if (std::exchange(state[1], Value(true)).truthy()) return state[0];
  return run.text(std::string());
}

Value do_joiner(Run& run, const Value&, const Arguments& arguments) {
  const auto given = bind(run, "joiner", arguments, {"sep"});
  if (!given) return {};
  const Value separator = given->front().is_undefined() ? run.text(std::string(", ")) : given->front();
  const Value state = run.list({separator, false});
  return CallableRef(run.heap.make<Native>("joiner", call_joiner, state));
}

struct Function {
  std::string_view name;
  NativeFunction function;
};
constexpr Function kFunctions[] = {
    {"range", do_range},
    {"dict", do_dict},
    {"namespace", do_namespace},
    {"raise_exception", do_raise_exception},
    {"strftime_now", do_strftime_now},
    {"joiner", do_joiner},
};

const Function* find(std::string_view name) {
  const auto* function = std::ranges::find(kFunctions, name, &Function::name);
  return function == std::end(kFunctions) ? nullptr : function;
}

}  // namespace

NativeFunction find_function(std::string_view name) {
  const Function* function = find(name);
  return function == nullptr ? nullptr : function->function;
}

std::string_view function_name(std::string_view name) {
  const Function* function = find(name);
  return function == nullptr ? std::string_view() : function->name;
}

}  // namespace ebb::jinja
