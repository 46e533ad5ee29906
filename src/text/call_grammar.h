// The grammar that makes a model call tools: for tool_choice `required` or a named function from the first token behind
// thinking, for `auto` from a trigger on.
//
// It does not know how grammars are run. Names and arguments are forced by the tools' schemas (json_schema_grammar.h); in
// XML families strings are free text up to their closing tag.
//
// Thread rule: functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/calls/call_format.h"

namespace ebb {

struct CallTrigger {
  std::string text;
  // Counts only where the answer begins, behind white space.
  bool only_first = false;
};

struct CallGrammar {
  std::string grammar;  // begins at "root", with the opening marker
  // For `auto`: the grammar is armed when one of these was generated, and begins with it.
  std::vector<CallTrigger> triggers = {};
  std::vector<std::string> unsupported = {};  // as JsonGrammar
};

struct CallChoice {
  std::vector<Tool> tools = {};
  // Only this one.
  std::optional<std::string> only = std::nullopt;
  bool parallel = true;
};

// kInvalidArgument for a name that is no tool's, no tools, or a schema that is none.
[[nodiscard]] Result<CallGrammar> call_grammar(const CallFormat& format, const CallChoice& choice);

}  // namespace ebb
