// Custom tools: tools of a chat whose argument is a text of no form, {"type": "custom", "custom": {"name", ...}}, said as functions
// with one argument. The answer's shape says calls of them as `custom` (ChatShapeOptions::custom_tools). A format that is a regular
// expression becomes the argument's pattern; grammars in other languages are not held, and a warning says so.
//
// Thread rule: functions of their arguments.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "json/json_fields.h"

namespace ebb {

// The one argument.
inline constexpr const char* kCustomInput = "input";

struct CustomTools {
  std::set<std::string> names = {};
  std::vector<std::string> warnings = {};
};

// The function that a custom tool is said as: its members but for `format`, of which the argument's schema is made.
[[nodiscard]] Json custom_as_function(Json custom, std::vector<std::string>& warnings);
// The text in arguments that a model wrote; "" where they were cut.
[[nodiscard]] std::string custom_input(const std::string& arguments);

// Tools, the choice among them and calls of messages become functions; the custom tools. What is no custom tool stays as it
// was. kInvalidArgument names the field.
[[nodiscard]] Result<CustomTools> say_custom_tools_as_functions(Json& body);

}  // namespace ebb
