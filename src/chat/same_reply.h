// Whether two texts of one reply say the same: as a model wrote it, and as a client sends it back.
//
// Clients parse the arguments of calls and write them anew, so that white space and the form of numbers and escapes change.
// Thinking, content, the calls' names and their order must be equal; arguments as JSON values, or byte for byte where they
// are no JSON. Thread rule: a function of its arguments.
#pragma once

#include <string_view>

#include "chat/reply_parser.h"

namespace ebb {

[[nodiscard]] bool is_same_reply(const ReplyRules& rules, std::string_view written, std::string_view said);

}  // namespace ebb
