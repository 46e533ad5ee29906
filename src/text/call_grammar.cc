#include "text/call_grammar.h"

#include "text/grammar/schema_rules.h"

namespace ebb {

Result<CallGrammar> call_grammar(const CallFormat& format, const CallChoice& choice) {
  std::vector<Tool> tools = choice.tools;
  if (choice.only) {
    const Tool* tool = find_tool(tools, *choice.only);
    if (tool == nullptr) {
      return error(Code::kInvalidArgument, "tool_choice names '{:.100}', which is not among the {} tools", *choice.only,
                   tools.size());
    }
    tools = {Tool(*tool)};
  }
  SchemaRules rules;
  const bool parallel = choice.parallel && format.allows_parallel();
  EBB_ASSIGN_OR_RETURN(const std::string calls, format.add_call_rules(rules, tools, parallel));
  rules.grammar().add("root", calls);
  CallGrammar made;
  EBB_ASSIGN_OR_RETURN(made.grammar, rules.grammar().finish());
  for (const CallOpener& opener : format.openers()) {
    made.triggers.push_back({.text = std::string(opener.text), .only_first = opener.only_first});
  }
  made.unsupported = rules.notes().unsupported;
  return made;
}

}  // namespace ebb
