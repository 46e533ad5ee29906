// Whether two texts of one reply say the same: as a model wrote it, and as a client sends it back.
//
// Clients parse the arguments of calls and write them anew, so that white space and the form of numbers and escapes change.
// Thinking, content, the calls' names and their order must be equal; arguments as JSON values, or byte for byte where they
// are no JSON. Thread rule: functions of their arguments.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/reply_parser.h"

namespace ebb {

[[nodiscard]] bool is_same_reply(const ReplyRules& rules, std::string_view written, std::string_view said);

// Of a reply that broke off inside a call, and that the client mended: places, in bytes of both, up to which they say the same, in order. What
// is said behind such a place may stand behind what was written up to there. There are some where the arguments of the last call that was begun
// stand in both texts as one JSON object, whole in the mended one; white space counts for nothing between its strings, numbers and
// words, and as it stands inside them. None where anything in front of them is not the same.
[[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> find_same_places(const ReplyRules& rules,
                                                                                std::string_view written,
                                                                                std::string_view said);

}  // namespace ebb
