#include "chat/jinja/filters.h"

namespace ebb::jinja {

Value apply_filter(Run& run, std::string_view name, const Value& input, const Arguments& arguments) {
  const Deeper deeper(run);
  if (!run.pay(1)) return {};
  NativeFunction filter = find_text_filter(name);
  if (filter == nullptr) filter = find_list_filter(name);
  if (filter == nullptr) filter = find_choosing_filter(name);
  if (filter == nullptr) return run.fail("there is no filter '{}'", name);
  return filter(run, input, arguments);
}

}  // namespace ebb::jinja
