// Grammar rules for JSON's characters, numbers and booleans (values and strings: grammar/value_syntax.h).
//
// Strings reach every Unicode scalar value; control characters only escaped, \u only as scalar
// values. Numbers have at most 16 digits before and after the point, so that none goes on for ever.
//
// Thread rule: functions on a GrammarRules of one thread.
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar_rules.h"

namespace ebb {

// Each adds its rule, and those it needs, once, and returns the rule's name.
std::string add_hex_rule(GrammarRules& rules);   // one digit
std::string add_char_rule(GrammarRules& rules);  // one character of a string
std::string add_integer_rule(GrammarRules& rules);
std::string add_number_rule(GrammarRules& rules);
std::string add_boolean_rule(GrammarRules& rules);

// The character as it stands inside a JSON string, in its one shortest form.
[[nodiscard]] std::string json_char_text(char32_t c);

}  // namespace ebb
