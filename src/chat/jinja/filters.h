// Filters and tests: `value | name(arguments)` and `value is name(argument)`, and the functions a template finds defined.
//
// Jinja2's, with those that HF adds. What this engine does not know is an
// error of the rendering that meets it, as in Jinja2, not of the template.
// Thread rule: tables that never change.
#pragma once

#include <optional>
#include <string_view>

#include "chat/jinja/callable.h"
#include "chat/jinja/run.h"

namespace ebb::jinja {

Value apply_filter(Run& run, std::string_view name, const Value& input, const Arguments& arguments);
bool apply_test(Run& run, std::string_view name, const Value& input, const Arguments& arguments);
// range, namespace, dict, raise_exception ...: null when there is none of this name.
[[nodiscard]] NativeFunction find_function(std::string_view name);
[[nodiscard]] std::string_view function_name(std::string_view name);

// The parts of the filters' table. Null when the part has no such filter.
[[nodiscard]] NativeFunction find_text_filter(std::string_view name);
[[nodiscard]] NativeFunction find_list_filter(std::string_view name);
[[nodiscard]] NativeFunction find_choosing_filter(std::string_view name);

}  // namespace ebb::jinja
