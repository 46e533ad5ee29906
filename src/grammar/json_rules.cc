#include "grammar/json_rules.h"

#include "json/json_string.h"

namespace ebb {

std::string add_hex_rule(GrammarRules& rules) { return rules.add("hex", "[0-9a-fA-F]"); }

std::string add_char_rule(GrammarRules& rules) {
  add_hex_rule(rules);
  // Not half a surrogate pair: parsers refuse those.
  rules.add("unit", "[0-9a-cA-CefEF] hex{3} | [dD] [0-7] hex{2} | [dD] [89abAB] hex{2} \"\\\\u\" [dD] [c-fC-F] hex{2}");
  return rules.add("char", "[^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" unit)");
}

std::string add_integer_rule(GrammarRules& rules) { return rules.add("integer", "\"-\"? (\"0\" | [1-9] [0-9]{0,15})"); }

std::string add_number_rule(GrammarRules& rules) {
  return rules.add("number", add_integer_rule(rules) + " (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?");
}

std::string add_boolean_rule(GrammarRules& rules) { return rules.add("boolean", "\"true\" | \"false\""); }

std::string json_char_text(char32_t c) {
  std::string text;
  if (c < 0x80) {
    add_json_char(text, static_cast<char>(c));
    return text;
  }
  add_utf8(c, text);
  return text;
}

}  // namespace ebb
