// Methods of strings, lists and dicts: Python's, as far as templates use them.
//
// Thread rule: tables that never change.
#pragma once

#include <string_view>

#include "chat/jinja/callable.h"

namespace ebb::jinja {

// Null when objects of this type have no such method.
[[nodiscard]] NativeFunction find_method(const Value& object, std::string_view name);
// The name as the table holds it, which lives for ever.
[[nodiscard]] std::string_view method_name(const Value& object, std::string_view name);

// str.format
Value format_braces(Run& run, const MarkedText& format, const Arguments& arguments);

}  // namespace ebb::jinja
