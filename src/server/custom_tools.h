// Custom tools: tools of a chat whose argument is a text of no form, {"type": "custom", "custom": {"name", ...}}, said as functions
// with one argument. The answer's shape says calls of them as `custom` (ChatShapeOptions::custom_tools).
//
// Thread rule: functions of their arguments.
#pragma once

#include <set>
#include <string>

#include "json/json_fields.h"

namespace ebb {

// The one argument.
inline constexpr const char* kCustomInput = "input";

// The schema of such a function's arguments.
[[nodiscard]] Json custom_parameters();
// The text in arguments that a model wrote; "" where they were cut.
[[nodiscard]] std::string custom_input(const std::string& arguments);

// Tools, the choice among them and calls of messages become functions; the names of custom tools. What is no custom tool stays as it
// was. kInvalidArgument names the field.
[[nodiscard]] Result<std::set<std::string>> say_custom_tools_as_functions(Json& body);

}  // namespace ebb
