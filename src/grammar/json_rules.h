// Grammar rules for JSON itself: what every schema is made of.
//
// White space: at most one space behind ':' and ',', none elsewhere; a model that may write as much as it likes can stall
// there until it is cut. Strings reach every Unicode scalar value; control characters only escaped, \u only as scalar
// values. Numbers have at most 16 digits before and after the point, so that none goes on for ever.
//
// Thread rule: functions on a GrammarRules of one thread.
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar_rules.h"

namespace ebb {

// Each adds its rule, and those it needs, once, and returns the rule's name.
std::string add_space_rule(GrammarRules& rules);   // what may stand behind ':' and ','
std::string add_char_rule(GrammarRules& rules);    // one character of a string
std::string add_string_rule(GrammarRules& rules);  // with quotes
std::string add_integer_rule(GrammarRules& rules);
std::string add_number_rule(GrammarRules& rules);
std::string add_boolean_rule(GrammarRules& rules);
std::string add_object_rule(GrammarRules& rules);  // any object
std::string add_array_rule(GrammarRules& rules);   // any array
std::string add_value_rule(GrammarRules& rules);   // anything

// The character as it stands inside a JSON string, in its one shortest form.
[[nodiscard]] std::string json_char_text(char32_t c);

}  // namespace ebb
