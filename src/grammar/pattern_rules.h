// A regular expression as grammar for the inside of a string.
//
// The part of ECMAScript's syntax that describes a regular language: characters and escapes, classes, groups without
// capture games, alternatives, counts, ^ at the beginning and $ at the end. Without an anchor anything may stand on
// that side. Look-around, back references, word borders and \p are not taken, nor are long patterns and large classes.
// In JSON, characters are written in their one shortest form.
//
// Thread rule: functions on a GrammarRules of one thread.
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar_rules.h"
#include "grammar/value_syntax.h"

namespace ebb {

// An expression for the inside of the strings that match, as the syntax writes it; kUnsupported, saying why, for what is not taken.
// Of what is barred from raw strings a character that the pattern does not mention is in no match.
[[nodiscard]] Result<std::string> pattern_expression(GrammarRules& rules, std::string_view pattern,
                                                     const ValueSyntax& syntax);

}  // namespace ebb
