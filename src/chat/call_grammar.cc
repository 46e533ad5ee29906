#include "chat/call_grammar.h"

#include "grammar/schema_rules.h"
#include "grammar/text_rules.h"

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
  GrammarRules& grammar = rules.grammar();
  const bool parallel = choice.parallel && format.allows_parallel();
  EBB_ASSIGN_OR_RETURN(const std::string calls, format.add_call_rules(rules, tools, parallel));
  const std::string_view opener = format.forced_opener();
  // Rules of calls begin with their mark.
  const std::string mark = grammar_literal(opener);
  const bool is_begun = !choice.begun.empty() && choice.begun == opener && calls.starts_with(mark);
  const std::string first = is_begun ? calls.substr(mark.size()) : calls;
  std::string answer = first;
  if (!choice.required && !choice.content.is_null()) {
    EBB_ASSIGN_OR_RETURN(const std::string content, rules.add_schema(choice.content));
    answer = fmt::format("({} | {} {})", first, one_of_openers(choice.content_openers), content);
  } else if (!choice.required && opener.empty()) {
    return CallGrammar{};
  } else if (!choice.required) {
    const std::vector<std::string> ends = format.text_ends(tools);
    const std::string text = add_text_without(grammar, {ends.begin(), ends.end()});
    answer = fmt::format("{} ({} {})?", text, calls, add_gap_rule(grammar));
    if (is_begun) answer = fmt::format("({} | {} {})", first, one_of_openers(choice.content_openers), answer);
  }
  const bool has_free_text = !choice.required && choice.content.is_null();
  if (choice.thinking && !has_free_text) answer = add_thinking(grammar, *choice.thinking, opener) + " " + answer;
  grammar.add("root", answer);
  CallGrammar made{.unsupported = rules.notes().unsupported};
  EBB_ASSIGN_OR_RETURN(made.grammar, grammar.finish());
  return made;
}

}  // namespace ebb
