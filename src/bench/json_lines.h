// Files of one JSON object a line, as data sets come.
//
// Thread rule: a function of its arguments.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "json/json_fields.h"

namespace ebb {

// Calls `take` with each line's object; empty lines are passed over. The first error, of the line itself, of a field that it
// asked for, or `take`'s own, ends it and names the line. kInvalidArgument where there is no line.
Status read_json_lines(std::string_view text, const std::function<Status(JsonFields&)>& take);

}  // namespace ebb
