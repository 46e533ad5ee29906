// The lexer: a template's source into tokens, with white space removed exactly where Jinja2 does it under trim_blocks and
// lstrip_blocks (and one final newline dropped).
//
// Thread rule: a function of its argument.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ebb::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    kText,         // between tags
    kOutputBegin,  // {{
    kOutputEnd,    // }}
    kBlockBegin,   // {%
    kBlockEnd,     // %}
    kName,
    kString,  // text: its value, escapes resolved
    kInteger,
    kFloat,
    kOperator,
    kEnd,
  };
  Kind kind;
  std::string text;
  int line;
};

// The last token is kEnd. kInvalidArgument names the line.
Result<std::vector<Token>> lex(std::string_view source);

}  // namespace ebb::jinja
