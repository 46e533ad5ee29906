#include "chat/answer_grammar.h"

#include "grammar/text_rules.h"

namespace ebb {

std::string add_thinking(GrammarRules& rules, const AnswerThinking& thinking, std::string_view opener) {
  std::vector<std::string_view> ends = {thinking.tags.close};
  if (!opener.empty()) ends.push_back(opener);
  const std::string text = add_text_without(rules, ends);
  const std::string gap = add_gap_rule(rules);
  const std::string close =
      fmt::format("({} {}){}", grammar_literal(thinking.tags.close), gap, opener.empty() ? "" : "?");
  if (thinking.is_open) return fmt::format("{} {}", text, close);
  return fmt::format("({} {} {} {})?", gap, grammar_literal(thinking.tags.open), text, close);
}

AnswerGrammar behind_thinking(std::string grammar, const std::optional<AnswerThinking>& thinking) {
  if (!thinking) return {.grammar = std::move(grammar)};
  GrammarRules rules("ebb-");
  AnswerGrammar answer{.grammar = std::move(grammar), .root = "ebb-answer"};
  rules.add(answer.root, add_thinking(rules, *thinking, "") + " root");
  // A few rules, which fit.
  answer.grammar += "\n" + rules.finish().value();
  return answer;
}

}  // namespace ebb
