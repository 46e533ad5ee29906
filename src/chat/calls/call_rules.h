// Grammar rules for calls in a CallForm, and what rules of other writings need.
//
// They do not know which family asks. Each returns the expression of one call or, where parallel, of one and more.
//
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/calls/call_form.h"
#include "chat/calls/tool.h"
#include "grammar/schema_rules.h"

namespace ebb {

// What a tool takes: its schema as that of an object, its properties, and which must come.
struct ToolArguments {
  nlohmann::ordered_json parameters;
  nlohmann::ordered_json properties;
  nlohmann::ordered_json required;

  [[nodiscard]] bool is_required(std::string_view key) const;
  // No key is described, and all may come.
  [[nodiscard]] bool takes_any() const;
};
// kInvalidArgument for schemas that are too large, or whose properties or required are none.
[[nodiscard]] Result<ToolArguments> read_tool_arguments(const Tool& tool);

// What messages and notes call it.
[[nodiscard]] std::string tool_title(const Tool& tool);

// One rule of all tools' calls, and the same call several times.
[[nodiscard]] Result<std::string> add_calls(SchemaRules& rules, const std::vector<Tool>& tools,
                                            const std::string& between, bool parallel,
                                            const std::function<Result<std::string>(const Tool&)>& write_call);

// Calls as a CallForm has them, the marks around them all included.
[[nodiscard]] Result<std::string> add_form_calls(SchemaRules& rules, const std::vector<Tool>& tools,
                                                 const CallForm& form, bool parallel);

}  // namespace ebb
