// Legacy functions: `functions`, `function_call` and messages of the role `function`, which OpenAI's chat had before tools,
// said as tools.
//
// There is one call to an answer, without an id; those of the history are given ids that depend on their place alone, so
// that a history is said alike each time. The answer's shape says its call as `function_call`
// (ChatShapeOptions::says_function_call). Thread rule: functions of their arguments.
#pragma once

#include "json/json_fields.h"

namespace ebb {

// Whether the request says what it may call in the old way, so that its answer must.
[[nodiscard]] bool has_legacy_functions(const Json& body);

// Adds the tools, the choice among them and the calls of messages; nothing where there are no functions. kInvalidArgument
// names the field, also where a request says both.
[[nodiscard]] Status say_functions_as_tools(Json& body);

}  // namespace ebb
