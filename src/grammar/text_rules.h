// Grammar rules for free text up to a mark.
//
// Thread rule: functions on a GrammarRules of one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_rules.h"

namespace ebb {

// Adds rules for text in which none of the marks occurs, and returns the name to begin with. The marks are UTF-8 and not
// empty.
[[nodiscard]] std::string add_text_without(GrammarRules& rules, const std::vector<std::string_view>& marks);

// Line breaks and spaces that models put between thinking and what follows; few, so that none stalls there.
std::string add_gap_rule(GrammarRules& rules);

}  // namespace ebb
