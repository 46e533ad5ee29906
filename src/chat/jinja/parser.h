// The parser: a template's source into its syntax tree, by Jinja2's grammar with the loopcontrols extension and
// {% generation %}. Include, import, extends and block are not in it: a chat template is one text.
//
// Thread rule: a function of its argument.
#pragma once

#include <string_view>

#include "base/status.h"
#include "chat/jinja/syntax.h"

namespace ebb::jinja {

// kInvalidArgument says on which line, what was expected and what stands there.
Result<Block> parse(std::string_view source);

}  // namespace ebb::jinja
